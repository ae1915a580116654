"""The lab's own figures about confidence are counted right."""

from __future__ import annotations

from lab.calibration import calibration, confusion, summary
from lab.score import Result


def result(expected: str, got: str, verdict: str, confidence: float | None, program: str = "failing") -> Result:
    return Result("c", program, "torch", expected, got, verdict, 2.0, confidence)


RESULTS = [
    result("disk-full", "disk-full", "right", 0.95),
    result("killed", "disk-full", "wrong", 0.92),
    result("killed", "killed", "right", 0.6),
    result("native-crash", "none", "cannot tell", None),
    result("none", "none", "right", None, "healthy"),
    result("none", "", "not staged", None, "healthy"),
]


def test_verdicts_are_counted_in_bands_of_confidence() -> None:
    rows = calibration(RESULTS).split("\n")
    assert [row.split()[3:5] for row in rows[1:]] == [["1", "1"], ["0", "0"], ["0", "0"], ["2", "1"]]


def test_what_is_taken_for_what_is_named() -> None:
    text = confusion(RESULTS)
    assert "killed taken for disk-full: 1" in text and "native-crash taken for none: 1" in text
    assert "always right: disk-full" in text


def test_the_summary_counts_false_alarms_only_among_what_ran() -> None:
    assert summary(RESULTS).startswith("right at first place: 2 of 4; confidently wrong: 1; false alarms: 0 of 1")
