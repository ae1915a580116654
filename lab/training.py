"""What a program's output tells of its training: the losses it began and ended with, its weights, whether it learned.

The programs of `lab/numerics/` print `first loss: X`, `final loss: X` and, where they are healthy, `weights: HASH`.
"""

from __future__ import annotations

import math
import re

from .case import Case

NUMBER = r"([-+]?(?:nan|inf|[\d.]+(?:e[-+]?\d+)?))"
FIRST_LOSS = re.compile(rf"^first loss: {NUMBER}", re.MULTILINE | re.IGNORECASE)
FINAL_LOSS = re.compile(rf"^final loss: {NUMBER}", re.MULTILINE | re.IGNORECASE)
WEIGHTS = re.compile(r"^weights: (\w+)", re.MULTILINE)


def losses(stdout: str) -> tuple[float | None, float | None]:
    """The first of the first attempt and the final of the last one."""
    first, final = FIRST_LOSS.search(stdout), FINAL_LOSS.findall(stdout)
    return (None if first is None else float(first[1])), (float(final[-1]) if final else None)


def not_fallen(stdout: str) -> list[str]:
    first, final = losses(stdout)
    if first is None or final is None:
        return ["no first and final loss was printed"]
    if not math.isfinite(final):
        return [f"the final loss is {final}"]
    return [] if final < first else [f"the loss went from {first:g} to {final:g}"]


def changed(stdout: str, beside: str) -> list[str]:
    """What differs from a run of the same program without Holdfast."""
    here, there = WEIGHTS.findall(stdout), WEIGHTS.findall(beside)
    if not here or not there:
        return ["no weights were printed"]
    return [] if here == there else [f"weights {', '.join(here)}, without Holdfast {', '.join(there)}"]


def not_as_labelled(case: Case, stdout: str, *, healthy: bool) -> list[str]:
    """Whether a program that runs bare fails, or learns, in the way its label says."""
    if not healthy:
        return [f"does not show {pattern!r}" for pattern in case.shows if not re.search(pattern, stdout, re.MULTILINE)]
    shown = [pattern for pattern in case.shows if re.search(pattern, stdout, re.MULTILINE)]
    complaints = [f"shows {', '.join(map(repr, shown))}"] if case.shows and len(shown) == len(case.shows) else []
    if case.learns and not re.search(case.learns, stdout, re.MULTILINE):
        complaints.append(f"does not show {case.learns!r}")
    return complaints + (not_fallen(stdout) if case.has_fault and not case.learns else [])
