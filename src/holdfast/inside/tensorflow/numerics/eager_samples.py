"""Samples of an eager loop of the script's own. Such a step cannot be run again, so in the steps that are looked at the script's
own calls of layers and losses are noted as they come, and nothing of it is computed twice."""

from __future__ import annotations

import contextlib
import functools
import time
import weakref
from typing import Any, Callable, List, NamedTuple, Optional, Tuple

from ...keras import seams as keras_seams
from ...keras.numerics.probe import Gradient, Probed
from ...keras.undo import replaced
from ...never_raise import guarded
from ...numerics.room import is_ample
from ...numerics.schedule import Schedule
from ...telemetry import Recorder, now
from .. import variable_values
from .forward_ops import ForwardOps
from .loop_samples import LoopModel, LoopSampler

SHARE = 0.0015
MOST = 5000  # calls of layers without an update
RESULTS = 48  # of layers, that are held until the update


class Held(NamedTuple):
    """The weights between two steps, as a sampler asks for them."""

    variables: List[Any]
    values: List[Any]

    @property
    def good(self) -> Held:
        return self


class EagerSampler(LoopSampler):
    def one(self, model: LoopModel, before: Held, after: Held, given: Any, step: int, loss: Optional[float]) -> None:
        """Of a step that is over."""
        self._take(model, before, given, step, loss)  # type: ignore[arg-type]
        self._tell(model, after)  # type: ignore[arg-type]

    @property
    def is_first(self) -> bool:
        return not self._setup_told

    def _value(self, name: str, value: float) -> None:
        self._recorder.writer.value(time.time(), self._recorder.steps, name, value)


class Noting:
    """What the script calls between two updates; `whole`: and each operation."""

    def __init__(self, tf: Any, whole: bool) -> None:
        self._tf, self._whole = tf, whole
        self._ops = ForwardOps()
        self.found = self._nothing()
        self.results: List[Tuple[Any, Any]] = []
        self.given: Any = None  # to the first of the outermost layers
        self._depth = self._noted = 0
        self._is_over = False  # the gradient was asked for
        self._stack = contextlib.ExitStack()

    def _nothing(self) -> Probed:
        found = Probed()
        found.ops = self._ops
        return found

    def begin(self) -> None:
        if self._whole:
            self._stack.enter_context(self._ops.recording())
        layer_class, loss_class = keras_seams.layer_class(), keras_seams.losses().Loss
        self._stack.enter_context(replaced(layer_class, "__call__", self._of_layers(layer_class.__call__)))
        self._stack.enter_context(replaced(loss_class, "__call__", self._of_losses(loss_class.__call__)))
        self._stack.enter_context(replaced(self._tf.GradientTape, "__enter__", self._of_tapes()))

    def end(self) -> None:
        self._stack.close()

    def gradient_taken(self) -> None:
        self._is_over = self.found.model is not None
        if self._is_over:
            self.end()

    def _of_layers(self, call: Callable[..., Any]) -> Callable[..., Any]:
        executing_eagerly = self._tf.executing_eagerly

        @functools.wraps(call)  # by its module autograph knows that it is not to be converted
        def noted(layer: Any, *args: Any, **kwargs: Any) -> Any:
            if not executing_eagerly():
                return call(layer, *args, **kwargs)
            self._depth += 1
            try:
                with self._ops.within(layer):
                    result = call(layer, *args, **kwargs)
            finally:
                self._depth -= 1
            self._note(layer, args, result)
            return result

        return noted

    def _of_losses(self, call: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(call)
        def noted(loss: Any, y_true: Any, y_pred: Any, *args: Any, **kwargs: Any) -> Any:
            found = self.found
            if found.loss is None:
                found.loss, found.parts = loss, (None, y_true, None)
                found.given, found.last_layer = y_pred, found.latest
            return call(loss, y_true, y_pred, *args, **kwargs)

        return noted

    def _of_tapes(self) -> Callable[..., Any]:
        """What was called before was for something else: a validation, a state of the world."""
        enter = self._tf.GradientTape.__dict__["__enter__"]

        @functools.wraps(enter)
        def noted(tape: Any) -> Any:
            if not self._depth:
                self.found, self.results, self.given = self._nothing(), [], None
            return enter(tape)

        return noted

    @guarded
    def _note(self, layer: Any, args: Any, result: Any) -> None:
        eager = [one for one in self._tf.nest.flatten(result) if hasattr(one, "numpy")]
        if not eager:
            return
        self._noted += 1
        if self._noted > MOST:
            self.end()  # no training any more
        found, inner = self.found, list(getattr(layer, "layers", ()))
        if not inner and type(layer).__name__ != "InputLayer":
            found.latest = layer
            found.first_layer = found.first_layer or layer
            if len(self.results) < RESULTS:
                self.results.append((layer, result))
        if self._depth:
            return
        if found.model is None:
            found.model, self.given = layer, args[0] if args else None
        if found.loss is None:
            found.given, found.last_layer = result, found.latest


class EagerSamples:
    """Of a loop with one optimizer. With several each step has its own models, and which of them a loss is of is not known."""

    def __init__(self, recorder: Recorder, tf: Any) -> None:
        self._recorder, self._tf = recorder, tf
        self._schedule = Schedule(share=SHARE)
        self._sampler = self._new_sampler()
        self._optimizer: Callable[[], Any] = lambda: None
        self._earlier: Any = weakref.WeakSet()
        self._is_off = False
        self._noting: Optional[Noting] = None
        self._before: Optional[Held] = None
        self._found, self._results = Probed(), []  # type: ignore[var-annotated]  # of the step that is told

    def _begin_with(self, optimizer: Any) -> None:
        """Trainings may follow each other; optimizers that take turns are several of one."""
        if optimizer in self._earlier:
            self._is_off, self._before = True, None
            return
        self._earlier.add(optimizer)
        self._optimizer = weakref.ref(optimizer)
        self._schedule, self._sampler = Schedule(share=SHARE), self._new_sampler()

    def _new_sampler(self) -> EagerSampler:
        return EagerSampler(self._recorder, self._tf, self._probe, lambda _: True)

    def gradient_taken(self) -> None:
        if self._noting is not None:
            self._noting.gradient_taken()

    def give_up(self, error: Exception) -> None:
        """For good: what fails in one step fails in each."""
        self._is_off, self._before = True, None
        if self._noting is not None:
            self._noting.end()
            self._noting = None
        self._recorder.event("numerics.not_sampled", reason=f"{type(error).__name__}: {error}"[:300])

    def applied(self, optimizer: Any, gradients: Any, variables: Any, loss: Optional[float]) -> None:
        """After the update."""
        if self._is_off:
            return
        noting, self._noting = self._noting, None
        if noting is not None:
            noting.end()
        if self._optimizer() is not optimizer:
            noting = None
            self._begin_with(optimizer)
            if self._is_off:
                return
        step = self._recorder.steps
        if noting is not None:
            began = now()
            self._take(noting, optimizer, gradients, variables, step, loss)
            self._schedule.looked(step, now() - began)
        if self._schedule.is_due(step + 1) and is_ample(self._recorder):  # results are held until the update
            self._before = _held(optimizer)
            self._noting = Noting(self._tf, self._sampler.is_first)
            self._noting.begin()

    def _take(
        self, noting: Noting, optimizer: Any, gradients: Any, variables: Any, step: int, loss: Optional[float]
    ) -> None:
        found, before = noting.found, self._before
        self._before = None
        asked = list(variables) if variables is not None else keras_seams.trained_by(optimizer)
        if found.model is None or before is None or not gradients or len(asked) != len(list(gradients)):
            return
        found.gradients = [Gradient(variable, value) for variable, value in zip(asked, gradients)]
        self._results, self._found = noting.results, found
        found.parts = (None, self._as_tensor(found.parts[1]), None)
        model = LoopModel(optimizer)
        model.real, model.loss = found.model, found.loss
        try:
            self._sampler.one(model, before, _held(optimizer), self._as_tensor(noting.given), step, loss)
        finally:
            self._results, self._found = [], Probed()

    def _as_tensor(self, given: Any) -> Any:
        """A loop may feed slices of arrays."""
        return self._tf.convert_to_tensor(given) if type(given).__module__ == "numpy" else given

    def _probe(
        self, _model: Any, _batch: Any, _tf: Any, _recorder: Any, on_layer: Any = None, _noted: Any = None
    ) -> Probed:
        for layer, result in self._results:
            if on_layer is not None:
                on_layer(layer, result)
        return self._found


def _held(optimizer: Any) -> Held:
    trained = keras_seams.trained_by(getattr(optimizer, "inner_optimizer", optimizer))
    variables = [keras_seams.value_or_itself(one) for one in trained]
    return Held(variables, [variable_values.read(one) for one in variables])
