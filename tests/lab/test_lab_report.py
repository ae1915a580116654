"""The lab's own figures are counted right."""

from __future__ import annotations

from lab import report
from lab.score import Result


def result(expected: str, got: str, verdict: str, confidence: float | None, program: str = "failing") -> Result:
    return Result("some-case", program, "torch", expected, got, verdict, 2.0, confidence, why_seconds=0.3)


RESULTS = [
    result("disk-full", "disk-full", "right", 0.95),
    result("killed", "disk-full", "wrong", 0.92),
    result("killed | terminated", "killed", "right", 0.6),
    result("native-crash", "none", "cannot tell", None),
    result("none", "none", "right", None, "healthy"),
    result("none", "", "not staged", None, "healthy"),
]
ALARM = Result("noisy", "healthy", "torch", "none", "killed", "false alarm", note="stderr: holdfast: careful")


def test_verdicts_are_counted_in_bands_of_confidence() -> None:
    rows = {row[0]: row[1:] for row in report.calibration(RESULTS)[1:]}
    assert rows["0.9 to 1.0"] == ("2", "1", "50%", "0.94")
    assert rows["0.5 to 0.7"] == ("1", "1", "100%", "0.60")
    assert rows["0.7 to 0.8"] == ("0", "0", "-", "-")


def test_what_is_taken_for_what_comes_with_the_mistakes_first() -> None:
    assert report.confusion(RESULTS)[1:] == [
        ("killed", "disk-full", "1", "<-"),
        ("native-crash", "none", "1", "<-"),
        ("disk-full", "disk-full", "1", ""),
        ("killed | terminated", "killed", "1", ""),
    ]


def test_false_alarms_are_named_and_counted_among_what_ran() -> None:
    assert report.alarms(RESULTS) == ["0 false alarms on 1 healthy programs"]
    assert report.alarms([*RESULTS, ALARM])[0] == "noisy: said killed; stderr: holdfast: careful"


def test_the_conclusion_says_whether_the_marks_are_reached() -> None:
    text = report.conclusion(RESULTS)
    assert text.startswith(
        "right at first place: 2 of 4 failing programs (50.0%), over 4 causes; confidently wrong: 1 (25.0%)"
    )
    assert text.endswith("marks: NOT passed")
    right = [result("disk-full", "disk-full", "right", 0.95)] * 19
    assert report.conclusion([*right, result("killed", "none", "cannot tell", None)]).endswith("marks: passed")
    assert report.conclusion([*right, result("killed", "disk-full", "wrong", 0.9)]).endswith("marks: NOT passed")
    assert report.conclusion([*right, ALARM]).endswith("marks: NOT passed")


def test_the_full_report_and_the_page_hold_the_same_figures() -> None:
    text, page = report.full(RESULTS), report.page(RESULTS)
    for part in (
        "right at first place: 2 of 4",
        "0 false alarms on 1 healthy programs",
        "until the question was answered",
    ):
        assert part in text and part in page
    assert page.startswith("# The laboratory\n")
    assert "| killed | disk-full | 1 | wrong |" in page
    assert "| some-case | failing | torch | killed or terminated | killed | 0.60 | right |" in page
    widths = {line.count("|") for line in page.splitlines() if line.startswith("| some-case")}
    assert len(widths) == 1
