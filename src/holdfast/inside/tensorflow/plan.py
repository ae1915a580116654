"""`holdfast plan` in loops around tf.GradientTape: the pulls hand out the first batch in other sizes; the loop is the script's."""

from __future__ import annotations

import functools
from typing import Any, Dict, List, Optional

from ..keras.batch_slices import rows_of
from ..keras.plan_anatomy import bytes_of
from ..keras.plan_batches import resized
from ..never_raise import guarded, on_failure
from ..plan.gauges import Card, Gauges
from ..plan.notes import Notes
from ..plan.rounds import Anatomy, Rounds
from ..rescue_engine import CannotSplit
from . import seams
from .nesting import nesting
from .nvml import free_bytes
from .optimizer import Apply
from .step import take_over_calls

_loops: List[PlannedTape] = []


def install(tf: Any, notes: Notes, wanted: Dict[str, Any]) -> None:
    on_failure(notes.failed)
    anatomy = TapeAnatomy()
    rounds = Rounds(notes, wanted, Gauges(card_gauge(tf)), anatomy)
    loop: Any = PlannedTape(rounds, anatomy, tf)
    _loops.append(loop)
    take_over_calls(loop, tf)
    _take_over_pulls(loop, tf)
    notes.tell("installed", framework="tensorflow", version=str(tf.__version__))


def follow_optimizers(optimizer_class: Any, tf: Any) -> None:
    for loop in _loops:
        watched: Any = loop
        optimizer_class.apply = Apply(optimizer_class.apply, watched, tf)


class TapeAnatomy(Anatomy):
    def __init__(self) -> None:
        self.optimizers: Dict[int, Any] = {}
        self.rows = self.batch_bytes = 0

    def facts(self) -> Dict[str, Any]:
        trained = {id(v): v for o in self.optimizers.values() for v in seams.trained_by(o)}
        weights = bytes_of(trained.values())
        return {
            "framework": "tensorflow", "rows": self.rows, "weights": weights, "gradients": weights,
            "optimizer": sum(bytes_of(o.variables) for o in self.optimizers.values()), "batch_bytes": self.batch_bytes,
            "optimizers": sorted({type(o).__name__ for o in self.optimizers.values()}), "layers": [],
            "layer_weights": {str(getattr(v, "path", v.name)): bytes_of([v]) for v in trained.values()},
        }  # fmt: skip


class PlannedTape:
    """What `take_over_calls` and `Apply` tell their loop, here only counted. `kept` and `watches` are theirs, and off."""

    kept = watches = eager = None

    def __init__(self, rounds: Rounds, anatomy: TapeAnatomy, tf: Any) -> None:
        self.rounds, self._anatomy, self._tf = rounds, anatomy, tf
        self.function_class = type(tf.function(lambda: None))
        self.optimizers: Dict[Any, Any] = {}  # by function, weakly referred to

    def begins(self) -> None:
        pass

    def failed(self, error: BaseException) -> None:
        pass

    def watch(self, *_: Any) -> None:
        pass

    @guarded
    def applied(self, optimizer: Any, _gradients: Any = None) -> None:
        self._anatomy.optimizers[id(optimizer)] = optimizer
        self._updated(())

    @guarded
    def called(self, function: Any, _began: float, _traces: int, args: Any, _result: Any) -> None:
        optimizer = self.optimizers.get(function, lambda: None)()
        if optimizer is not None:
            self._anatomy.optimizers[id(optimizer)] = optimizer
        self._updated(args)

    def _updated(self, args: Any) -> None:
        if self.rounds.sizes is not None:
            self.rounds.updated()
            return
        self.rounds.resizes = False  # nothing was pulled: the size of a batch is the script's own affair
        self._anatomy.rows = _counted_rows(args, self._tf) if args else 0
        self.rounds.begins(0)

    @guarded
    def handed_out(self, source: Any, first: Any) -> Any:
        rounds = self.rounds
        rounds.pulled(source)
        rows = _counted_rows(first, self._tf)
        rounds.firsts[source] = first
        if rounds.sizes is None:
            rounds.resizes = rounds.resizes and rows > 0
            rounds.begins(rows)
        wanted = rounds.scaled(rows) if rounds.resizes and rows else rows
        self._anatomy.rows = wanted
        return resized(first, rows, wanted, self._tf) if rows else first


def _take_over_pulls(loop: PlannedTape, tf: Any) -> None:
    owned = seams.iterator_class()
    pull = getattr(owned, seams.NEXT)
    rounds, turn, executing_eagerly = loop.rounds, guarded(loop.rounds.turn), tf.executing_eagerly

    @functools.wraps(pull)
    def _next_internal(self: Any) -> Any:
        if nesting.depth or not executing_eagerly():
            return pull(self)
        turn()
        source = str(self.element_spec)
        first = rounds.firsts.get(source)
        if first is None or source not in rounds.trained:
            first = pull(self)
        batch = loop.handed_out(source, first)
        return first if batch is None else batch

    setattr(owned, seams.NEXT, _next_internal)


def card_gauge(tf: Any) -> Optional[Card]:
    """Of TensorFlow's allocator on the first card; None without one."""
    if not tf.config.list_physical_devices("GPU"):
        return None

    def most() -> int:
        return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])

    def room() -> Optional[int]:
        """By default TensorFlow takes the card at once: what is free then is asked of the driver before."""
        free = free_bytes()
        return None if free is None else free + int(tf.config.experimental.get_memory_info("GPU:0")["current"])

    return Card(lambda: tf.config.experimental.reset_memory_stats("GPU:0"), most, room)


def _counted_rows(batch: Any, tf: Any) -> int:
    try:
        return rows_of(batch, tf)
    except CannotSplit:
        return 0
