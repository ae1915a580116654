"""Where the numbers of Keras's training are taken hold of: the step, assignments between steps, the ends of epochs."""

from __future__ import annotations

import functools
import math
from typing import Any, Callable, List, Optional

from ...never_raise import guarded
from ...numerics.events import tell_epoch
from ...numerics.plain_numbers import told
from ...telemetry import Recorder
from ...tensorflow.loop import loop_of
from ...tensorflow.nesting import nesting
from ...tensorflow.numerics.flight_recorder import FlightRecorder
from ...tensorflow.numerics.snapshot import Snapshot
from ...tensorflow.numerics.step_watch import Step
from .. import seams
from .executions import Executions
from .fed_labels import FedLabels
from .going_on import GoingOn
from .health import Sampler
from .held_out import HeldOut
from .incidents import Incidents, mean_loss
from .watch import ModelWatch

Aspect = Callable[[Step], Step]

AT_EPOCH, AT_END = 0.003, 0.05  # of the time since the last look, for one at the end of an epoch or a fit


class Numerics:
    """For every model of this process."""

    def __init__(self, recorder: Recorder, tf: Any, epoch_iterator: Callable[[], Any], values: Any) -> None:
        self._recorder, self._tf, self._epoch_iterator, self._values = recorder, tf, epoch_iterator, values
        self._watches = loop_of(recorder, tf).watches
        self._fed: List[FedLabels] = []
        self._held_out: List[HeldOut] = []

    def follow_assignments(self) -> None:
        variable_class = seams.variable_class("tensorflow")
        assign = getattr(variable_class, seams.DIRECT_ASSIGN)
        executing_eagerly, watches = self._tf.executing_eagerly, self._watches

        @functools.wraps(assign)
        def noticed(self: Any, value: Any) -> Any:
            result = assign(self, value)
            if not nesting.depth and watches and executing_eagerly():
                watches.assigned(seams.value_of(self), value)
            return result

        setattr(variable_class, seams.DIRECT_ASSIGN, noticed)

    @guarded
    def of_step(self, model_ref: Callable[[], Any]) -> Optional[Aspect]:
        watch = self._watch_of(model_ref)
        self._fed = [one for one in self._fed if one.is_alive()]
        self._fed.append(fed := FedLabels(watch, self._epoch_iterator))
        self._held_out = [one for one in self._held_out if one.is_alive()]
        self._held_out.append(HeldOut(watch, self._epoch_iterator))
        return lambda step: fed.aspect(watch.aspect(step))

    @guarded
    def of_executions(self, model_ref: Callable[[], Any], count: int) -> Optional[Executions]:
        """Of a model that makes several steps at once."""
        return Executions(self._watch_of(model_ref), count, lambda: seams.on_one_device(model_ref()))

    def _watch_of(self, model_ref: Callable[[], Any]) -> ModelWatch:
        watch = ModelWatch(self._recorder, self._tf, model_ref)
        sampler = Sampler(self._recorder, self._tf)
        incidents = Incidents(watch, self._epoch_iterator, sampler.memory)
        going_on = GoingOn(watch, incidents)
        watch.incident = going_on
        watch.well = well = Well(going_on, sampler, self._values)
        watch.begins = well.begins
        watch.rate_is_set = sampler.rate_is_set
        self._watches.add(watch)
        return watch

    def is_sound(self) -> bool:
        """Looked at now: a state is about to be saved."""
        self._watches.between_steps(math.inf)
        return not self._watches.any_sick()

    def validation_begins(self, *_: Any, **__: Any) -> None:
        self._watches.between_steps(AT_EPOCH)
        for one in self._held_out:
            one.validation_begins()

    def fit_ends(self, *_: Any, **__: Any) -> None:
        self._watches.between_steps(AT_END)

    @guarded
    def epoch_ends(self, epoch: int = -1, logs: Any = None) -> None:
        self._watches.between_steps(AT_EPOCH)
        for fed in self._fed:
            fed.epoch_is_over()
        numbers = {str(name): told(value) for name, value in (logs or {}).items() if _is_number(value)}
        tell_epoch(self._recorder, int(epoch), self._recorder.steps, numbers)


class Well:
    """After a look that found all finite: samples, if it is time."""

    def __init__(self, going_on: GoingOn, sampler: Sampler, values: Any) -> None:
        self._going_on, self._sampler, self._values = going_on, sampler, values
        self._earlier: Optional[Snapshot] = None

    def begins(self, flight: FlightRecorder) -> None:
        """Before the first step, or with other variables."""
        self._earlier = self._going_on.sound = flight.good
        self._sampler.begins(flight)

    def __call__(self, watch: ModelWatch, batch: Any, step: int) -> float:
        """How many steps until the next look, at most."""
        flight, model = watch.flight, watch.model_ref()
        assert flight is not None and flight.good is not None
        loss = mean_loss(model, flight, self._earlier)
        self._going_on.checked(self._earlier, loss)
        self._sampler.note_loss(step, loss)
        self._earlier = flight.good
        again = self._sampler.sample(model, flight, batch, step, loss)
        self._values.measured = self._values.measured or self._sampler.has_gradients
        return 1 if again else self._sampler.steps_left(step)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) or getattr(value, "shape", None) == ()
