"""How fast a level rises: over hundredths of a second, and over seconds."""

from __future__ import annotations

from collections import deque

FAST_S, FAST_LEAST_S = 0.04, 0.008  # span of the fast rate: eight readings at 200 Hz, at least two
SLOW_S, SLOW_LEAST_S = 4.0, 1.0  # span of the slow rate
APART_S = 0.1  # between readings that are kept for the slow rate


class GrowthRate:
    """Times are the job's own: the time in which it was paused does not count."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, float]] = deque(maxlen=24)
        self._kept: deque[tuple[float, float]] = deque(maxlen=int(SLOW_S / APART_S) + 1)

    def add(self, at: float, level: float) -> None:
        self._recent.append((at, level))
        if not self._kept or at - self._kept[-1][0] >= APART_S:
            self._kept.append((at, level))

    def fast_per_s(self) -> float:
        if not self._recent:
            return 0.0
        at, level = self._recent[-1]
        for before_at, before in reversed(self._recent):
            if at - before_at >= FAST_S:
                return (level - before) / (at - before_at)
        before_at, before = self._recent[0]
        return (level - before) / (at - before_at) if at - before_at >= FAST_LEAST_S else 0.0

    def slow_per_s(self) -> float:
        """The lower of the rates of both halves: a single jump falls into one half only."""
        if len(self._kept) < 4 or self._recent[-1][0] - self._kept[0][0] < SLOW_LEAST_S:
            return 0.0
        first, last = self._kept[0], self._recent[-1]
        if last[1] <= first[1]:
            return 0.0
        middle = min(self._kept, key=lambda point: abs(point[0] - (first[0] + last[0]) / 2))
        if not first[0] < middle[0] < last[0]:
            return 0.0
        rates = ((b[1] - a[1]) / (b[0] - a[0]) for a, b in ((first, middle), (middle, last)))
        return max(0.0, min(rates))
