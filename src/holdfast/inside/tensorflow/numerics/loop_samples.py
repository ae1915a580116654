"""Samples of a step of the script's own in a `tf.function`: it is run eagerly with its arguments, and nothing of it stays."""

from __future__ import annotations

from typing import Any, Callable, List, Optional

from ...keras import seams as keras_seams
from ...keras.numerics.health import Sampler
from ...keras.numerics.probe import Probed, probed_step
from ...numerics.repeatable import repeatable
from ...numerics.room import is_ample
from ...telemetry import Recorder
from .flight_recorder import FlightRecorder


class LoopModel:
    """What such a step trains, with the attributes of a compiled model that samples read; others are the model's own."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer = optimizer
        self.loss: Any = None
        self.real: Any = None
        self.trainable_variables: List[Any] = keras_seams.trained_by(getattr(optimizer, "inner_optimizer", optimizer))

    @property
    def kind_name(self) -> str:
        return type(self.real).__name__

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__dict__["real"], name)


class LoopSampler(Sampler):
    def _tell_setup(self, model: Any, batch: Any, found: Optional[Probed], step: int) -> None:
        """Only of a model that was seen at work, in the words of a batch of `fit`."""
        if found is None or found.model is None:
            return
        inputs = [one for one in self._tf.nest.flatten(batch) if isinstance(one, self._tf.Tensor)][:1]
        super()._tell_setup(model, (inputs[0] if inputs else None, found.parts[1]), found, step)


class LoopSamples:
    def __init__(self, recorder: Recorder, tf: Any, function: Callable[[], Any], optimizer: Callable[[], Any]) -> None:
        self._function, self._optimizer = function, optimizer
        self._sampler = LoopSampler(recorder, tf, self._probe, self._may_probe)

    def begins(self, flight: FlightRecorder) -> None:
        self._sampler.begins(flight)

    def sample(self, flight: FlightRecorder, given: Any, step: int, loss: Any) -> float:
        """How many steps until the next look, at most."""
        optimizer = self._optimizer()
        if optimizer is None:
            return float("inf")
        again = self._sampler.sample(LoopModel(optimizer), flight, given, step, loss)
        return 1 if again else self._sampler.steps_left(step)

    @property
    def has_gradients(self) -> bool:
        return self._sampler.has_gradients

    def _may_probe(self, _model: LoopModel) -> bool:
        return repeatable([self._function().python_function])

    def _probe(
        self, model: LoopModel, given: Any, tf: Any, recorder: Recorder, on_layer: Any, noted: Any
    ) -> Optional[Probed]:
        if not is_ample(recorder):  # its batch cannot be cut
            return None
        args, kwargs = given
        found = Probed()
        probed_step(lambda: self._function()(*args, **kwargs), [model.optimizer], found, tf, on_layer, noted)
        model.real, model.loss = found.model, found.loss
        return found
