"""Whether confidence means something: of the verdicts given with 0.9, nine in ten should be right. And what is taken for what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from .case import CANNOT_TELL
from .score import NOT_STAGED, RIGHT, Result

BANDS = ((0.5, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 1.01))


def calibration(results: Sequence[Result]) -> str:
    """Failing programs only: a healthy one has no verdict to be sure of."""
    told = [result for result in _failing(results) if result.confidence is not None]
    rows = ["confidence  verdicts  right  mean confidence"]
    for low, high in BANDS:
        band = [result for result in told if low <= (result.confidence or 0.0) < high]
        mean = f"{sum(result.confidence or 0.0 for result in band) / len(band):.2f}" if band else "-"
        rows.append(
            f"{low:.1f} to {min(high, 1.0):.1f}  {len(band):8}  {sum(_named_right(r) for r in band):5}  {mean:>15}"
        )
    return "\n".join(rows)


def confusion(results: Sequence[Result]) -> str:
    """Each cause that was taken for another one, and how often; the causes that were always right in one line."""
    failing = _failing(results)
    wrong = Counter((result.expected, result.got) for result in failing if not _named_right(result))
    right = {result.expected for result in failing} - {expected for expected, _ in wrong}
    rows = [f"{expected} taken for {got}: {count}" for (expected, got), count in sorted(wrong.items())]
    return "\n".join([*rows, f"always right: {', '.join(sorted(right)) or '-'}"])


def summary(results: Sequence[Result]) -> str:
    failing, healthy = _failing(results), [r for r in results if r.program == "healthy" and r.verdict != NOT_STAGED]
    alarms = sum(result.verdict == "false alarm" for result in healthy)
    first = sum(_named_right(result) for result in failing)
    sure = sum(result.confidently_wrong for result in failing)
    seconds = [result.seconds for result in failing]
    took = f", {median(seconds):.1f} s in the middle until the verdict" if seconds else ""
    return (
        f"right at first place: {first} of {len(failing)}; confidently wrong: {sure}; "
        f"false alarms: {alarms} of {len(healthy)}{took}"
    )


def _failing(results: Sequence[Result]) -> list[Result]:
    return [result for result in results if result.program == "failing" and result.verdict != NOT_STAGED]


def _named_right(result: Result) -> bool:
    return result.verdict == RIGHT or result.got in (
        result.expected.split(" | ") if result.expected != CANNOT_TELL else ()
    )
