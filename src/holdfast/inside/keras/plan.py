"""`holdfast plan` in Keras: at its first call the training step is run on the first batch in several sizes, and no further."""

from __future__ import annotations

import functools
import sys
from typing import Any, Dict

from ..never_raise import guarded, on_failure, outcome
from ..plan.gauges import Gauges
from ..plan.notes import Notes
from ..plan.rounds import Rounds
from ..rescue_engine import CannotSplit
from ..tensorflow.nesting import nesting
from ..tensorflow.plan import card_gauge, follow_optimizers
from . import seams
from .batch_slices import open_ended, rows_of
from .plan_anatomy import KerasAnatomy
from .plan_batches import resized


def install(keras: Any, notes: Notes, wanted: Dict[str, Any]) -> None:
    on_failure(notes.failed)
    if not seams.is_keras_3():
        notes.tell("cannot", reason="this is a Keras before 3")
        return
    backend = str(keras.backend.backend())
    notes.tell("installed", framework="keras", version=str(keras.__version__), backend=backend)
    if backend == "tensorflow":
        tf = sys.modules["tensorflow"]
        _take_over(functools.partial(_first_call, tf, notes, wanted))
        for name in ("fit", "evaluate", "predict"):
            _hide_pulls(name)
        follow_optimizers(seams.optimizer_class(), tf)
    elif backend == "torch":
        from ..torch.plan import of_process

        _take_over(functools.partial(_told, of_process().updated))
    else:
        notes.tell("cannot", reason=f"Keras on {backend} is not measured yet")


def _take_over(around: Any) -> None:
    trainer = seams.trainer_class()
    make = trainer.make_train_function

    @functools.wraps(make)
    def make_train_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.train_function
        result = make(self, *args, **kwargs)
        if self.train_function is not before and self.train_function is not None:
            self.train_function = around(self, self.train_function)
        return result

    trainer.make_train_function = make_train_function


def _hide_pulls(name: str) -> None:
    """What Keras pulls is no batch of a loop of the script's own."""
    trainer = seams.trainer_class()
    method = getattr(trainer, name)

    @functools.wraps(method)
    def hidden(self: Any, *args: Any, **kwargs: Any) -> Any:
        nesting.depth += 1
        try:
            return method(self, *args, **kwargs)
        finally:
            nesting.depth -= 1

    setattr(trainer, name, hidden)


def _told(updated: Any, _model: Any, function: Any) -> Any:
    """On torch the batches are pulled from loaders of PyTorch, where they are measured."""

    def train_function(data: Any) -> Any:
        result = function(data)
        guarded(updated)()
        return result

    return train_function


def _first_call(tf: Any, notes: Notes, wanted: Dict[str, Any], model: Any, function: Any) -> Any:
    on_batch = seams.inner(function, "one_step_on_data")
    compiled = seams.compiled_step(on_batch) if on_batch is not None else None

    def train_function(iterator: Any) -> Any:
        batch = iterator.get_next() if isinstance(iterator, tf.data.Iterator) else next(iter(iterator))
        run = on_batch if model.steps_per_execution != 1 and on_batch is not None else lambda data: function((data,))
        anatomy = KerasAnatomy(tf, model)
        rounds = Rounds(notes, wanted, Gauges(card_gauge(tf)), anatomy)
        nesting.depth += 1
        rows = _counted_rows(batch, tf)
        rounds.resizes = rounds.resizes and rows > 0
        if rounds.resizes and hasattr(compiled, "get_concrete_function"):
            anatomy.graph = outcome(_graph, compiled, open_ended(batch, tf))[0]
        guarded(rounds.begins)(rows)
        while True:  # ends with the process
            guarded(rounds.turn)()
            given = resized(batch, rows, rounds.rows, tf) if rounds.resizes else batch
            anatomy.given(given, batch)
            rounds.gauges.kept = anatomy.kept_bytes
            run(given)
            rounds.updated()

    return train_function


def _graph(compiled: Any, data: Any) -> Any:
    """One trace for all sizes. Where it cannot be had, each size is traced by itself."""
    return compiled.get_concrete_function(data).graph


def _counted_rows(batch: Any, tf: Any) -> int:
    try:
        return rows_of(batch, tf)
    except CannotSplit:
        return 0
