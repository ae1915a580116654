"""How fast something changes, told from a jump."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median


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
