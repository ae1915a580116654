"""Numbers as events carry them: JSON knows neither NaN nor infinity."""

from __future__ import annotations

import math
from collections import deque
from typing import Any, Deque, Dict, List, Optional, Tuple, Union

Told = Union[float, int, str, None]
DIGITS = 6
KEPT = 10


def told(value: Any) -> Told:
    """A number of any framework as a plain one, with six digits; "NaN", "Inf", "-Inf" as texts."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return value
    number = float(value)
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "Inf" if number > 0 else "-Inf"
    return float(f"{number:.{DIGITS}g}")


def all_told(values: Dict[str, Any]) -> Dict[str, Told]:
    return {name: told(value) for name, value in values.items()}


def kind_of(nans: int, infinities: int, negative: int) -> Optional[str]:
    """Which of the three stands for all: NaN where there is one, since it is what spreads."""
    if nans:
        return "NaN"
    if infinities or negative:
        return "Inf" if infinities >= negative else "-Inf"
    return None


def words(value: float) -> str:
    """For a clause: `0.0`, `812.5`, `5.1e+38`, `-Inf`."""
    said = told(value)
    return said if isinstance(said, str) else str(float(f"{value:.4g}"))


class History:
    """The latest numbers of a run with their steps."""

    __slots__ = ("_kept",)

    def __init__(self, kept: int = KEPT) -> None:
        self._kept: Deque[Tuple[int, float]] = deque(maxlen=kept)

    def add(self, step: int, value: float) -> None:
        self._kept.append((step, value))

    def told(self, count: int = KEPT) -> List[List[Told]]:
        return [[step, told(value)] for step, value in list(self._kept)[-count:]]

    def finite(self) -> List[float]:
        return [value for _, value in self._kept if math.isfinite(value)]

    def usual(self) -> Optional[float]:
        """The median of what is finite; None where there is nothing."""
        values = sorted(self.finite())
        return values[len(values) // 2] if values else None
