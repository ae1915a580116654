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
BRACKET = 1.25
WORTH_IT = 1.1  # times the rows of the one before
ROUNDS, FEW_ROUNDS, MOST_ROUNDS = 3, 2, 6
STEADY_RATIO = 1.01  # a new high beyond this means that the allocator is not settled yet
SLOW_PART = 16  # of the time there is: a step that takes longer is measured less often


class Sizes:
    def __init__(
        self,
        own_rows: int,
        asked_rows: Optional[int],
        room_bytes: Optional[int],
        seconds: float,
        limit_bytes: Optional[int] = None,
        card_room_bytes: Optional[int] = None,
        beyond: int = BEYOND,
        first_part: int = FIRST_PART,
    ) -> None:
        self.own, self.asked, self.seconds = own_rows, asked_rows, seconds
        self.room = room_bytes  # of this machine: nothing that needs more is run
        self.limit = limit_bytes  # that is asked about, and may well be run beyond
        self.card_room, self.beyond, self.first_part = card_room_bytes, beyond, first_part
        self.points: List[Point] = []
        self.fixed = 0  # held before the first step
        self.least_a_row = 0.0

    def first(self) -> int:
        """Two rows at least: normalisation over a batch refuses a single one."""
        return max(min(self.own, 2), self.own // self.first_part)

    def next(self, spent_s: float) -> Optional[int]:
        """None where enough is known, or nothing more can be."""
        last = self.points[-1]
        rows = (FAST_GROWTH if self._grew_little() else GROWTH) * last.rows
        for wanted in (self.own, self.asked or 0):
            rows = wanted if last.rows < wanted < rows else rows
        found = self._around_limit(rows)
        if found is None or found > self.beyond * max(self.own, self.asked or 0):
            return None
        rows = found
        rows = self._that_fit(rows)
        if rows < WORTH_IT * last.rows:
            return None
        left_s = self.seconds - spent_s
        needed_s = ROUNDS * last.seconds * rows / last.rows
        is_wanted = rows <= max(self.own, self.asked or 0)  # what was asked for is worth more time than what might be
        return rows if needed_s < (3 * self.seconds if is_wanted else left_s) else None

    def _around_limit(self, rows: int) -> Optional[int]:
        """Just below the limit that is asked about, then just beyond it, and no further but for what is wanted."""
        last, limit = self.points[-1], self.limit
        if limit is None:
            return rows
        if last.host_bytes > limit:
            return next((wanted for wanted in (self.own, self.asked or 0) if wanted > last.rows), None)
        curve = self.curve()
        if curve.at(rows) <= limit:
            return rows
        near = curve.rows_within(limit)
        return near if near >= WORTH_IT * last.rows else max(last.rows + 1, int(BRACKET * last.rows))

    def _grew_little(self) -> bool:
        if len(self.points) < 2:
            return False
        before, last = self.points[-2:]
        return last.host_bytes - before.host_bytes < NOTHING_RATIO * last.host_bytes and last.seconds < 0.1

    def _that_fit(self, rows: int) -> int:
        for curve, room in ((self.curve(), self.room), (self.card_curve(), self.card_room)):
            if curve is not None and room is not None:
                surely = Curve(curve.rows, curve.bytes, curve.fixed, SURELY * curve.a_row())
                if surely.at(rows) > NEAR_ROOM * room:
                    rows = max(self.points[-1].rows, min(rows, surely.rows_within(NEAR_ROOM * room)))
        return rows

    def card_curve(self) -> Optional[Curve]:
        on_card = [(p.rows, p.gpu_bytes) for p in self.points if p.gpu_bytes]
        return Curve([r for r, _ in on_card], [b for _, b in on_card], 0, self.least_a_row) if on_card else None

    def curve(self) -> Curve:
        return Curve([p.rows for p in self.points], [p.host_bytes for p in self.points], self.fixed, self.least_a_row)

    def rounds_done(self, peaks: List[int], step_s: float) -> bool:
        """Whether a size has been run often enough: until the allocator asks for nothing new."""
        least = FEW_ROUNDS if step_s > self.seconds / SLOW_PART else ROUNDS
        if len(peaks) < least:
            return False
        return len(peaks) >= MOST_ROUNDS or peaks[-1] <= STEADY_RATIO * max(peaks[-2], 1)
