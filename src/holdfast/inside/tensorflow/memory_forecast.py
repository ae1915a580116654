"""What a step will need, before it is run at full size.

Where the user gave a budget, TensorFlow has a limit; and at its limit oneDNN's operations on the CPU do not check that
they got their memory: they crash instead of raising (seen in fused matrix products and convolutions). Where there is
none, the kernel kills. On a card TensorFlow waits ten seconds before it says that there is no memory, and a step compiled
by XLA loses the variables it was to update. So a step that might not fit is measured on a few rows first. Whether it might
is read off the traced graph: with a budget what is not far below the limit is measured, by a bound from above; on a card
what is near it; elsewhere only what holds more at once than the kernel will give, by a bound from below, so that a run
which would have gone through is never touched.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable, NamedTuple, Optional

from ..headroom import left
from ..held_memory import held_by_this_process, peak_bytes, reset_peak
from ..out_of_memory import attempt
from .budget import card_limit
from .graph_memory import least_bytes, most_bytes

WHOLE_RATIO = 0.95  # of a limit: a batch that needs no more goes through as it is
SURELY_NOT_RATIO = 1.02  # of what the kernel would give: only a batch that needs more is cut beforehand
PIECE_RATIO = 0.8  # of a limit: what a piece may need, so that it also fits tomorrow
CARD_LIKELY_RATIO = 1.6  # of the bound from below, which is three quarters of the truth for a transformer
CARD_PIECE_RATIO = 0.92  # of a card's: its allocator counts everything
# Left to the rest of the process, of what is free (what the kernel would give, and what TensorFlow holds unused, which may lie
# in pieces): the second epoch of a fit on arrays took 46 MiB more, and what the allocator cannot put together again about as
# much. On a busy machine, where operations end in another order, a piece took up to 1.6 times what it had taken when it was
# measured, in 3 of 12 runs.
SPARE_RATIO, SPARE_BYTES, SPARE_AT_MOST_RATIO = 0.5, 96 << 20, 0.7
FIRST_PART = 64  # of a batch: the smallest piece that is measured
SURELY = 1.3  # what a measurement may be short of: TensorFlow does not count tensors under 256 KiB


class Room(NamedTuple):
    """For TensorFlow's tensors, those it holds included."""

    bytes: int
    of: str  # budget, container, machine or card
    left: int  # beyond what the process holds
    whole: float  # that a whole batch may need
    piece: float


class Forecast:
    """For steps on the CPU."""

    on_gpu = False
    device = "CPU:0"

    def __init__(self, tf: Any, groups: Any = (), ranks: int = 1, budget: Optional[int] = None) -> None:
        self._tf = tf
        self._groups, self._ranks = groups, max(1, ranks)
        self._budget = budget
        self._most_held = 0
        self.pending = 0  # what the first update will take beside the step

    def limit(self) -> Optional[int]:
        """Of the allocator; None where there is none or it does not count."""
        words = os.environ.get("TF_MKL_ALLOC_MAX_BYTES", "")
        if words.isdigit() and self.used() is not None:
            return int(words)
        return None

    def room(self) -> Optional[Room]:
        """Pages that were in use once are the process's own: it need not ask the kernel for them again."""
        used, limit = self.used(), self.limit()
        if used is None:
            return None
        if limit is not None:
            if self._budget is not None:  # which the rest of the process takes from, too
                limit = min(limit, self._held_at_most() + max(0, self._budget - held_by_this_process()))
            return Room(limit, "budget", limit - used, limit * WHOLE_RATIO, limit * PIECE_RATIO)
        found = left(self._groups)
        if found is None:
            return None
        more = found.bytes // self._ranks
        total = self._held_at_most() + more
        free = total - used
        spare = min(max(free * SPARE_RATIO, SPARE_BYTES), free * SPARE_AT_MOST_RATIO)
        return Room(total, found.of, more, total * SURELY_NOT_RATIO, total - spare)

    def used(self) -> Optional[int]:
        counted = self._counted()
        return None if counted is None else counted + self.pending

    def _counted(self) -> Optional[int]:
        try:
            return int(self._tf.config.experimental.get_memory_info(self.device)["current"])
        except (ValueError, KeyError):
            return None

    def _held_at_most(self) -> int:
        peak = int(self._tf.config.experimental.get_memory_info(self.device)["peak"])
        self._most_held = max(self._most_held, peak)
        return self._most_held

    def must_be_measured(self, graph: Any, rows: int, turns: int) -> bool:
        room, used = self.room(), self.used()
        if room is None or used is None:
            return False
        if room.of == "budget":  # beyond it is a crash
            return used + most_bytes(graph, rows, max(1, turns)) > room.piece
        return used + self.least(graph, rows) > room.whole

    def least(self, graph: Any, rows: int) -> int:
        return least_bytes(graph, rows)

    def likely(self, graph: Any, rows: int) -> float:
        return float(self.least(graph, rows))

    def measure(self, run: Callable[[], object]) -> int:
        """Bytes that a call needs beyond what is held."""
        self._held_at_most()
        self._tf.config.experimental.reset_memory_stats(self.device)
        before, resident = self._counted() or 0, self._begin_of_resident_peak()
        run()
        counted = int(self._tf.config.experimental.get_memory_info(self.device)["peak"]) - before
        return max(counted, (peak_bytes() or 0) - resident) if resident else counted

    def _begin_of_resident_peak(self) -> int:
        """What TensorFlow does not count: tensors under 256 KiB, which is all that a recurrent layer has."""
        return reset_peak() or 0

    def probe(self, rows: int, run: Callable[[int], object], at_most: Optional[int] = None) -> Line:
        """Twice as many rows each time, as long as the next ones surely fit. Small tensors go uncounted, so the last two
        measurements count. `run` does a piece of so many rows. What was taken once is not given back: so never more than
        `at_most`, the rows of a piece."""
        room, used = self.room(), self.used()
        if room is None or used is None:
            raise CannotMeasure
        space = room.piece - used
        most = max(1, min(rows // 2, at_most or rows))
        few = max(1, min(rows // FIRST_PART, most))
        run(few)  # the first call also sets things up
        line = Line(0, 0, few, self.measure(lambda: run(few)))
        while 2 * few <= most and line.at(2 * few) * SURELY < space:
            few *= 2
            needed, failure = attempt(self.measure, functools.partial(run, few))
            if failure is not None:
                raise TooMany(few) from None
            line = Line(line.rows, line.bytes, few, needed)
        return line

    def rows_that_fit(self, rows: int, line: Line, held_for_pieces: int, gathered: int = 0) -> Optional[int]:
        """None where all of them do at once. `held_for_pieces` is only held where there are pieces; `gathered` will be, by
        the last piece."""
        room, used = self.room(), self.used()
        if room is None or used is None:
            return None
        needed = used - held_for_pieces + line.at(rows)
        if needed <= room.whole:
            return None
        space = room.piece - used - line.at(0) - gathered
        return max(1, min(rows - 1, int(space / line.a_row)))


class ResidentForecast(Forecast):
    """For steps on the CPU where freed pages go back at once, and TensorFlow does not count."""

    def limit(self) -> Optional[int]:
        return None

    def _counted(self) -> Optional[int]:
        return held_by_this_process()

    def _held_at_most(self) -> int:
        return held_by_this_process()

    def measure(self, run: Callable[[], object]) -> int:
        resident = self._begin_of_resident_peak()
        if not resident:
            raise CannotMeasure
        run()
        return (peak_bytes() or 0) - resident


class CardForecast(Forecast):
    """For steps on a GPU."""

    on_gpu = True
    device = "GPU:0"

    def limit(self) -> Optional[int]:
        return None

    def must_be_measured(self, graph: Any, rows: int, turns: int) -> bool:
        """Only what may not fit: to measure takes seconds, and runs the user's step on a few rows."""
        room, used = self.room(), self.used()
        return room is not None and used is not None and used + self.likely(graph, rows) > room.piece

    def likely(self, graph: Any, rows: int) -> float:
        return CARD_LIKELY_RATIO * self.least(graph, rows)

    def room(self) -> Optional[Room]:
        used, limit = self.used(), card_limit()
        if used is None or limit is None:
            return None
        return Room(limit.bytes, limit.of, limit.bytes - used, limit.bytes, limit.bytes * CARD_PIECE_RATIO)

    def _begin_of_resident_peak(self) -> int:
        return 0


class CannotMeasure(Exception):
    """Nothing says what there is."""


class TooMany(Exception):
    def __init__(self, rows: int) -> None:
        super().__init__(rows)
        self.rows = rows


class Line:
    """Memory over rows, through two measurements."""

    def __init__(self, rows_before: int, bytes_before: int, rows: int, needed: int) -> None:
        self.rows, self.bytes = rows, needed
        self.a_row = max(1.0, (needed - bytes_before) / (rows - rows_before))

    def not_below(self, rows: int, needed: int) -> None:
        """Many small tensors, those of a loop's turns, are not counted: then the graph knows better."""
        if needed > self.at(rows):
            self.rows, self.bytes, self.a_row = rows, needed, max(self.a_row, needed / rows)

    def at(self, rows: int) -> float:
        return max(0.0, self.bytes + self.a_row * (rows - self.rows))
