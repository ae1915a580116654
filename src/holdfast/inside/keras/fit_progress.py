"""What is reported of a training under way in Keras: epochs, phases, steps, and the values worth reading late."""

from __future__ import annotations

import weakref
from typing import Any, Callable

from ..never_raise import guarded
from ..ring import TRAIN, VALIDATE
from ..telemetry import Recorder
from ..tensorflow import seams as tf_seams
from . import seams
from .late_values import Values


class Fit:
    def __init__(self, recorder: Recorder, values: Values) -> None:
        self._recorder = recorder
        self._values = values
        self._fitting = 0
        self._epoch_began_at_step = 0
        self._epoch_iterator: Callable[[], Any] = lambda: None

    # -- from the callback list

    @guarded
    def fit_begins(self) -> None:
        if not self._fitting and not self._recorder.steps:
            self._recorder.event("train.begun", by="fit")
        self._fitting += 1

    @guarded
    def fit_ends(self) -> None:
        self._fitting = max(0, self._fitting - 1)
        if not self._fitting:
            self._recorder.phase("idle")

    @guarded
    def epoch_begins(self, epoch: int) -> None:
        self._epoch_began_at_step = self._recorder.steps
        self._recorder.epoch(epoch)

    @guarded
    def validation_begins(self) -> None:
        self._recorder.phase("validate")

    @guarded
    def validation_ends(self) -> None:
        self._recorder.phase("train" if self._fitting else "idle")

    # -- from the epoch iterator

    def epoch_iterator(self) -> Any:
        """Of the training data; None where there is none."""
        return self._epoch_iterator()

    @guarded
    def iterates(self, epoch_iterator: Any) -> None:
        if self._recorder.phase_number != VALIDATE:
            self._epoch_iterator = weakref.ref(epoch_iterator)

    @guarded
    def ran_out_of_data(self, epoch_iterator: Any) -> None:
        if self._recorder.phase_number == VALIDATE:
            return
        self._recorder.event(
            "train.data_exhausted",
            steps_done=self._recorder.steps - self._epoch_began_at_step,
            steps_asked=epoch_iterator.steps_per_epoch,
            epoch=self._recorder.epoch_number,
            step=self._recorder.steps,
        )

    # -- from the step

    @guarded
    def begins(self, traces: Any) -> None:
        """Said before the first step: it may be the last."""
        if not traces.seen and not traces.stepped:
            self._recorder.phase("compile" if traces.can_trace() else "train")

    @guarded
    def pulled(self, wait_s: float, batch: Any) -> None:
        self._recorder.waited(wait_s)
        self._recorder.batch(shape_of(batch))

    @guarded
    def stepped(self, compute_s: float, logs: Any, traces: Any, optimizer: Callable[[], Any], count: int = 1) -> None:
        recorder = self._recorder
        new, traces.stepped = traces.new(), True
        if new:
            compute_s += traces.preparing_s
            recorder.event(
                "train.compiled", what="train_function", step=recorder.steps + 1, seconds=compute_s, traces=traces.seen
            )
            traces.preparing_s = 0.0
        elif recorder.phase_number != TRAIN:
            recorder.phase("train")
        recorder.step(compute_s, count)
        self._values.offer(logs, optimizer)

    @guarded
    def stepped_several(
        self, compute_s: float, result: Any, traces: Any, optimizer: Callable[[], Any], model_ref: Callable[[], Any]
    ) -> None:
        logs = result[0] if isinstance(result, tuple) and result else result  # JAX hands its state back as well
        count = self.steps_at_once(model_ref())
        self.stepped(compute_s, logs, traces, optimizer, count)

    def steps_at_once(self, model: Any) -> int:
        """The last of an epoch may run fewer; how many is known where the data's length is."""
        several = int(getattr(model, "steps_per_execution", 1))
        epoch_iterator = self._epoch_iterator()
        length = seams.num_batches(epoch_iterator)
        if several == 1 or not length:
            return several
        return max(1, several - max(0, int(seams.steps_seen(epoch_iterator)) - int(length)))


def shape_of(batch: Any) -> tuple[int, ...]:
    """Of the first array of the inputs. 0.3 µs: a tensor's `shape` would build an object each time."""
    x = batch
    while isinstance(x, (tuple, list, dict)):
        if not x:
            return ()
        x = next(iter(x.values())) if isinstance(x, dict) else x[0]
    return tuple(tf_seams.quick_shape(x) or ())
