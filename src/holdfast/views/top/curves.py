"""A course of values drawn with characters, in one row or several."""

from __future__ import annotations

import math
from collections.abc import Sequence

NOT_FINITE = "x"


def over_time(points: Sequence[tuple[float, float]], width: int) -> list[float]:
    """One value a column, of (time, value) in order: the mean of those that fall into it; where none does, the one before.

    A record holds more of its last minutes than of the hours before: a column a reading would bend the axis.
    """
    width = min(width, len(points))
    if width <= 0:
        return []
    began, took = points[0][0], points[-1][0] - points[0][0]
    columns: list[list[float]] = [[] for _ in range(width)]
    for at, value in points:
        columns[min(width - 1, int((at - began) / took * width)) if took > 0 else 0].append(value)
    values: list[float] = []
    for column in columns:
        values.append(sum(column) / len(column) if column else values[-1])  # nan and inf stay what they are
    return values


def drawn(values: Sequence[float], rows: int, heights: str) -> list[str]:
    """A column a value, the top row first. `heights`: what fills a cell, the least first."""
    known = [value for value in values if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    shares = [
        ((value - low) / (high - low) if high > low else 0.0) if math.isfinite(value) else None for value in values
    ]
    return ["".join(_cell(share, row, rows, heights) for share in shares) for row in reversed(range(rows))]


def _cell(share: float | None, row: int, rows: int, heights: str) -> str:
    """`row` counts from below; None: no finite number."""
    if share is None:
        return NOT_FINITE if row == 0 else " "
    filled = min(rows * len(heights), 1 + int(share * rows * len(heights))) - row * len(heights)
    return " " if filled <= 0 else heights[min(filled, len(heights)) - 1]
