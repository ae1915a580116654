"""A model's learning rate as something that can be lowered: a variable of its optimizer's, or a schedule, whose rates are multiplied."""

from __future__ import annotations

from typing import Any, Optional

from ...numerics.plain_numbers import words
from .. import seams
from .compiled_anew import compiled_anew
from .state import optimizer_of
from .watch import ModelWatch

FACTOR = "_holdfast_rate_factor"  # on an optimizer with a schedule: the variable that multiplies it


class Rate:
    """`variable`: TensorFlow's own. Of a schedule it is the factor that its rates are multiplied with."""

    def __init__(self, variable: Any) -> None:
        self.variable = variable

    def now(self) -> float:
        return float(self.variable.numpy())

    def set(self, value: float) -> None:
        self.variable.assign(value)

    def words(self, was: float, lowered: float) -> str:
        return f"learning rate {words(was)} lowered to {words(lowered)}"

    def undo(self, was: float) -> None:
        self.set(was)


class ScheduledRate(Rate):
    """The step is compiled anew: Keras reads the rate while it traces."""

    def __init__(self, variable: Any, schedule: str, optimizer: Any, fresh: bool) -> None:
        super().__init__(variable)
        self._schedule, self._optimizer, self._fresh = schedule, optimizer, fresh

    def words(self, was: float, lowered: float) -> str:
        return f"all learning rates of the schedule ({self._schedule}) multiplied by {words(lowered)}"

    def undo(self, was: float) -> None:
        super().undo(was)
        if self._fresh:
            seams.scale_schedule(self._optimizer, None)
            self._optimizer.__dict__.pop(FACTOR, None)


def of(watch: ModelWatch) -> Optional[Rate]:
    """Changes what the watch runs, where it is a schedule's."""
    optimizer = optimizer_of(watch.model_ref())
    schedule = seams.schedule_of(optimizer)
    if schedule is None:
        return Rate(seams.value_of(optimizer.learning_rate))
    factor = optimizer.__dict__.get(FACTOR)
    fresh = factor is None
    if fresh:
        factor = watch.tf.Variable(1.0, trainable=False)
        if not seams.scale_schedule(optimizer, factor):
            return None
        optimizer.__dict__[FACTOR] = factor
        watch.run = compiled_anew(watch.model_ref(), watch.tf)
    return ScheduledRate(factor, type(schedule).__name__, optimizer, fresh)
