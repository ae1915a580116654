"""Whether a batch will fit, before it is run: at its limit TensorFlow may crash, the kernel kills, and XLA loses variables."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

from ..never_raise import on_error
from ..out_of_memory import give_back
from ..tensorflow.graph_memory import most_rows
from ..tensorflow.memory_forecast import CannotMeasure, Forecast, Line, Room, TooMany
from .batch_slices import rows_of, tail_of
from .traced_graphs import is_traced, let_go


class Foreseen(NamedTuple):
    rows: int  # that a piece may have
    needed: int  # by the whole batch, in bytes
    room: Room


class Foresight:
    """Of one kind of step of one model."""

    def __init__(
        self, forecast: Forecast, tf: Any, compiled: Any, where: str, pending: Callable[[], int] = lambda: 0
    ) -> None:
        self.forecast, self._tf, self._where, self._pending = forecast, tf, where, pending
        self._compiled: Any = compiled if hasattr(compiled, "get_concrete_function") else None
        # By the shape of a row: memory over rows, what is held only for pieces, and what is gathered in them.
        self._lines: dict[Any, tuple[Line, int, int]] = {}
        self._most_rows: dict[Any, int] = {}  # that a piece can have, whatever the memory

    def look(
        self, batch: Any, sliced: Callable[[], Any], begin_with: int, in_pieces: bool = False
    ) -> Optional[Foreseen]:
        """None where the batch goes through as it is, or nothing can be told. `begin_with` pieces were handed on by an
        attempt that was killed: there is nothing to lose by measuring. Once batches are run in pieces, no graph of a
        whole one is made only to look at it."""
        forecast = self.forecast
        forecast.pending = self._pending()
        room = forecast.room()
        if room is None or (self._compiled is None and (begin_with <= 1 or self._where == "predict")):
            return None
        rows, tail = rows_of(batch, self._tf), tail_of(batch, self._tf)
        of_slices = (begin_with > 1 or in_pieces) and self._where != "predict" and not is_traced(self._compiled)
        graph = sliced().graph(batch) if of_slices else self._concrete(batch).graph
        if begin_with <= 1 and graph is not None and not forecast.must_be_measured(graph, rows, turns_of(tail)):
            return None
        least, graph = forecast.least(graph, rows) if graph is not None else 0, None
        # A prediction's pieces are run by the same function; on a card a graph is no matter.
        lets_go = not of_slices and self._where != "predict" and not forecast.on_gpu
        trace_again = let_go(self._compiled) if lets_go else _nothing
        found = self.measured(batch, rows, tail, sliced(), room, least, -(-rows // begin_with))
        if found is None:
            trace_again()
        return found

    def likely(self, batch: Any, rows: int, tail: Any) -> float:
        """What the whole batch needs on a card, beyond what is held: measured, or else read off its graph."""
        if tail in self._lines:
            return self._lines[tail][0].at(rows)
        return float(self.forecast.likely(self._concrete(batch).graph, rows))

    def again(self, rows: int, tail: Any) -> Optional[int]:
        """How many rows a piece may have by now; None where it was not measured or a limit says when it is too many."""
        known, self.forecast.pending = self._lines.get(tail), 0
        if known is None or self.forecast.limit() is not None:
            return None
        fit = self.forecast.rows_that_fit(rows, *known)
        return rows if fit is None else min(fit, self._most_rows[tail])

    def _concrete(self, batch: Any) -> Any:
        tf = self._tf
        optional: Any = tf.experimental.Optional  # where there is none: Keras turns it into None before it calls
        data = tf.nest.map_structure(lambda leaf: None if isinstance(leaf, optional) else leaf, batch)
        return self._compiled.get_concrete_function([data] if self._where == "predict" else data)

    def measured(
        self, batch: Any, rows: int, tail: Any, sliced: Any, room: Room, least: int, at_most: int
    ) -> Optional[Foreseen]:
        def try_rows(few: int) -> None:
            with on_error(lambda _error: sliced.put_back()):
                sliced.try_rows(batch, few)

        try_rows(1)
        graph = sliced.graph(batch) if self.forecast.on_gpu and self._where != "predict" else None
        most = self._most_rows[tail] = rows if graph is None else most_rows(graph)
        give_back()  # what optimising the graph took
        try:
            line = self.forecast.probe(rows, try_rows, min(at_most, most))
        except TooMany as tried:
            return Foreseen(max(1, tried.rows // 2), 0, room)
        except CannotMeasure:
            return None
        line.not_below(rows, least)
        held = self._lines[tail] = (line, sliced.held_bytes(), sliced.gathered_bytes(rows))
        fit = self.forecast.rows_that_fit(rows, *held)
        return None if fit is None else Foreseen(min(fit, most), int(line.at(rows)), room)


def turns_of(tail: Any) -> int:
    """How often a loop over a sequence of this shape may turn."""
    return max((size for shape in tail for size in shape[:1]), default=1)


def _nothing() -> None:
    pass
