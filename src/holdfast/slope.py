"""How fast something changes, told from a jump."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from statistics import median

MOST_POINTS = 24  # of a fall: pairwise slopes of more points cost milliseconds and give the same answer


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """The median of all pairwise slopes (Theil-Sen) of (x, y) in the order of x; None where no two x differ.

    Up to 29 % of the points may be anything: one jump does not make a trend.
    """
    slopes = [
        (y_later - y) / (x_later - x)
        for i, (x, y) in enumerate(points)
        for x_later, y_later in points[i + 1 :]
        if x_later > x
    ]
    return median(slopes) if slopes else None


def fall_per_s(points: Sequence[tuple[float, float]], apart_s: float, at_least: int) -> float | None:
    """How fast the room that is left shrinks; None where too few of these (time, room) lie far enough apart.

    A jump in the middle affects more than half of the pairs, so a trend has to remain without the two largest falls.
    """
    course = _spread(points, apart_s)[-MOST_POINTS:]
    if len(course) < at_least:
        return None
    steepness, steady = (-(slope(course) or 0.0) for course in (course, _without_jumps(course)))
    return steepness if steady > steepness / 4 else 0.0


def _without_jumps(points: Sequence[tuple[float, float]], jumps: int = 2) -> list[tuple[float, float]]:
    falls = [before[1] - after[1] for before, after in pairwise(points)]
    largest = sorted(range(len(falls)), key=lambda i: falls[i])[-jumps:]
    return [(at, left + sum(falls[jump] for jump in largest if jump < i)) for i, (at, left) in enumerate(points)]


def _spread(points: Sequence[tuple[float, float]], apart_s: float) -> list[tuple[float, float]]:
    """Evenly spaced, so that a second with twenty readings does not outweigh the minute before it."""
    kept: list[tuple[float, float]] = []
    for point in reversed(points):
        if not kept or kept[-1][0] - point[0] >= apart_s:
            kept.append(point)
    return kept[::-1]
