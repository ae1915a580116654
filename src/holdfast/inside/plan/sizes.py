"""Which batch is measured next: ascending, each only where what was measured says that it fits, and while there is time."""

from __future__ import annotations

from typing import List, Optional

from .memory_curve import Curve, Point

FIRST_PART = 4  # of the script's own batch
GROWTH, FAST_GROWTH = 2, 4
NOTHING_RATIO = 0.01  # of the peak: what grew by less since the last size may grow faster
BEYOND = 64  # times what is wanted: no larger batch is tried, only told of
SURELY = 1.25  # what the next one may need beyond the curve, of the part that grows
NEAR_ROOM = (
    0.92  # of what there is: the last measurement comes that near, so that what is told of the limit is no guess
)
WORTH_IT = 1.1  # times the rows of the one before
ROUNDS, FEW_ROUNDS, MOST_ROUNDS = 3, 2, 6
STEADY_RATIO = 1.01  # a new high beyond this means that the allocator is not settled yet
SLOW_PART = 16  # of the time there is: a step that takes longer is measured less often


class Sizes:
    def __init__(self, own_rows: int, asked_rows: Optional[int], room_bytes: Optional[int], seconds: float) -> None:
        self.own, self.asked, self.room, self.seconds = own_rows, asked_rows, room_bytes, seconds
        self.points: List[Point] = []
        self.fixed = 0  # held before the first step
        self.least_a_row = 0.0

    def first(self) -> int:
        """Two rows at least: normalisation over a batch refuses a single one."""
        return max(min(self.own, 2), self.own // FIRST_PART)

    def next(self, spent_s: float) -> Optional[int]:
        """None where enough is known, or nothing more can be."""
        last = self.points[-1]
        rows = (FAST_GROWTH if self._grew_little() else GROWTH) * last.rows
        for wanted in (self.own, self.asked or 0):
            rows = wanted if last.rows < wanted < rows else rows
        if rows > BEYOND * max(self.own, self.asked or 0):
            return None
        rows = self._that_fit(rows)
        if rows < WORTH_IT * last.rows:
            return None
        left_s = self.seconds - spent_s
        needed_s = FEW_ROUNDS * last.seconds * rows / last.rows
        is_wanted = rows <= max(self.own, self.asked or 0)  # what was asked for is worth more time than what might be
        return rows if needed_s < (3 * self.seconds if is_wanted else left_s) else None

    def _grew_little(self) -> bool:
        if len(self.points) < 2:
            return False
        before, last = self.points[-2:]
        return last.host_bytes - before.host_bytes < NOTHING_RATIO * last.host_bytes and last.seconds < 0.1

    def _that_fit(self, rows: int) -> int:
        if self.room is None:
            return rows
        last, curve = self.points[-1], self.curve()
        surely = Curve(curve.rows, curve.bytes, self.fixed, SURELY * curve.a_row())
        if surely.at(rows) <= NEAR_ROOM * self.room:
            return rows
        return max(last.rows, min(rows, surely.rows_within(NEAR_ROOM * self.room)))

    def curve(self) -> Curve:
        return Curve([p.rows for p in self.points], [p.host_bytes for p in self.points], self.fixed, self.least_a_row)

    def rounds_done(self, peaks: List[int], step_s: float) -> bool:
        """Whether a size has been run often enough: until the allocator asks for nothing new."""
        least = FEW_ROUNDS if step_s > self.seconds / SLOW_PART else ROUNDS
        if len(peaks) < least:
            return False
        return len(peaks) >= MOST_ROUNDS or least == FEW_ROUNDS or peaks[-1] <= STEADY_RATIO * max(peaks[-2], 1)
