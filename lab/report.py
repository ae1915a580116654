"""The score in full: what is taken for what, whether confidence means something, false alarms, times."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from statistics import median

from . import score
from .case import CANNOT_TELL, Case
from .score import FALSE_ALARM, NOT_STAGED, RIGHT, Result

BANDS = ((0.0, 0.5), (0.5, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.01))
CELL = " | "
INTRODUCTION = """\
# The laboratory

Programs as people write them, each with a label: the cause that makes it fail, or none. A failing program has a healthy
twin that differs by the fault alone; other healthy ones only look dangerous. Each runs for real, under `holdfast run`,
and `holdfast why` is asked afterwards. This page is the output of

    python -m lab --score --markdown

The marks: at least 95 % of the failing programs right at first place, no false alarm on a healthy one, at most 2 %
confidently wrong.
"""


def full(results: Sequence[Result]) -> str:
    sections = (
        score.table(results),
        "what was said for what (expected x said)\n" + _aligned(confusion(results)),
        "confidence\n" + _aligned(calibration(results)),
        "alarms on healthy programs\n" + "\n".join(alarms(results)),
        "times\n" + _aligned(times(results)),
        conclusion(results),
    )
    return "\n\n".join(sections)


def page(results: Sequence[Result]) -> str:
    rows = [("case", "program", "framework", "expected", "said", "confidence", "verdict")]
    rows += [(r.case, r.program, r.framework, r.expected, r.got, _two_digits(r.confidence), r.verdict) for r in results]
    sections = (
        INTRODUCTION.rstrip(),
        conclusion(results).replace("\n", "\n\n"),
        "## What was said for what\n\n" + _markdown(confusion(results)),
        "## Confidence\n\n" + _markdown(calibration(results)),
        "## Alarms on healthy programs\n\n" + "\n\n".join(alarms(results)),
        "## Times\n\n" + _markdown(times(results)),
        "## Every program\n\n" + _markdown(rows),
    )
    return "\n\n".join(sections) + "\n"


def listing(cases: Sequence[Case]) -> str:
    rows = [
        (case.name, case.expected if case.has_fault else "(healthy)", "quick" if case.quick else "", case.title)
        for case in cases
    ]
    causes = {cause for case in cases for cause in case.accept}
    failing = sum(case.has_fault for case in cases)
    return f"{_aligned(rows)}\n\n{failing} failing programs, {len(causes)} causes, {len(cases)} healthy programs"


def confusion(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """One row for each pair that occurred; the wrong ones first."""
    pairs = Counter((result.expected, result.got) for result in _staged(results, "failing"))
    wrong_first = sorted(pairs, key=lambda pair: (pair[1] in pair[0].split(CELL), pair))
    rows = [
        (expected, said, str(pairs[expected, said]), "" if said in expected.split(CELL) else "<-")
        for expected, said in wrong_first
    ]
    return [("expected", "said", "programs", ""), *rows]


def calibration(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """Failing programs only: a healthy one has no verdict to be sure of."""
    told = [result for result in _staged(results, "failing") if result.confidence is not None]
    rows = [("confidence", "verdicts", "right", "share right", "mean confidence")]
    for low, high in BANDS:
        band = [result for result in told if low <= (result.confidence or 0.0) < high]
        right = sum(_named_right(result) for result in band)
        share = f"{right / len(band):.0%}" if band else "-"
        mean = f"{sum(result.confidence or 0.0 for result in band) / len(band):.2f}" if band else "-"
        rows.append((f"{low:.1f} to {min(high, 1.0):.1f}", str(len(band)), str(right), share, mean))
    return rows


def alarms(results: Sequence[Result]) -> list[str]:
    healthy = _staged(results, "healthy")
    false = [result for result in healthy if result.verdict == FALSE_ALARM]
    lines = [f"{result.case}: said {result.got}; {result.note}" for result in false]
    return [*lines, f"{len(false)} false alarms on {len(healthy)} healthy programs"]


def times(results: Sequence[Result]) -> list[tuple[str, ...]]:
    failing = _staged(results, "failing")
    kinds = (
        ("until the failing program had ended", [result.seconds for result in failing]),
        ("until a warning during the run", [r.warned_after for r in failing if r.warned_after is not None]),
        ("until the question was answered", [r.why_seconds for r in failing if r.why_seconds is not None]),
    )
    rows = [("seconds", "programs", "in the middle", "longest")]
    for name, seconds in kinds:
        if seconds:
            rows.append((name, str(len(seconds)), f"{median(seconds):.1f}", f"{max(seconds):.1f}"))
    return rows


def conclusion(results: Sequence[Result]) -> str:
    counted = score.totals(results)
    causes = {cause for r in _staged(results, "failing") for cause in r.expected.split(CELL)} - {CANNOT_TELL}
    return (
        f"right at first place: {counted.right} of {counted.failing} failing programs ({counted.share_right:.1%}), "
        f"over {len(causes)} causes; confidently wrong: {counted.confidently_wrong} "
        f"({counted.share_confidently_wrong:.1%}); false alarms: {counted.false_alarms} of {counted.healthy}; "
        f"not staged: {counted.not_staged}\n"
        f"marks: {'passed' if counted.passed else 'NOT passed'}"
    )


def _staged(results: Sequence[Result], program: str) -> list[Result]:
    return [result for result in results if result.program == program and result.verdict != NOT_STAGED]


def _named_right(result: Result) -> bool:
    return result.verdict == RIGHT or result.got in result.expected.split(CELL)


def _two_digits(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _aligned(rows: Sequence[tuple[str, ...]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)


def _markdown(rows: Sequence[tuple[str, ...]]) -> str:
    def line(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "or").replace("<-", "wrong") for cell in cells) + " |"

    return "\n".join([line(rows[0]), line("---" for _ in rows[0]), *map(line, rows[1:])])
