"""Evaluation and prediction have a size of their own: running out of memory there says nothing about training."""

from __future__ import annotations

import functools
import weakref
from typing import Any, Callable

from ..never_raise import guarded
from . import seams
from .batch_slices import cut
from .rescue import KerasDriver, Rescue


def take_over_evaluation(trainer: Any, rescue: Rescue) -> None:
    make_test, make_predict = trainer.make_test_function, trainer.make_predict_function

    @functools.wraps(make_test)
    def make_test_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.test_function
        with rescue.while_making(self, "evaluate"):
            result = make_test(self, *args, **kwargs)
        if self.test_function is not before and self.test_function is not None:
            replace_test(self)
        return result

    @functools.wraps(make_predict)
    def make_predict_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.predict_function
        result = make_predict(self, *args, **kwargs)
        if self.predict_function is not before and self.predict_function is not None:
            replace_predict(self)
        return result

    @guarded
    def replace_test(model: Any) -> None:
        model.test_function = testing(model, model.test_function, rescue)

    @guarded
    def replace_predict(model: Any) -> None:
        model.predict_function = predicting(model, model.predict_function, rescue)

    trainer.make_test_function = make_test_function
    trainer.make_predict_function = make_predict_function


def testing(model: Any, function: Any, rescue: Rescue) -> Callable[[Any], Any]:
    from .step import TracedSteps, prepare

    on_batch = seams.inner(function, "one_step_on_data")
    compiled = seams.compiled_step(on_batch)
    rescued = rescue.of_step(weakref.ref(model), compiled, "evaluate")
    several = int(model.steps_per_execution)
    if rescued is None or on_batch is None or (several != 1 and not rescue.catches(model)):
        return function  # type: ignore[no-any-return]
    tf = rescue.tf
    step = rescued.around(on_batch)
    if several != 1:
        return one_after_the_other(function, step, several, tf)
    traces = TracedSteps([compiled])
    prepared: list[Any] = [
        lambda: None
    ]  # the iterator whose declared shapes the step was traced for; None: it cannot be

    def test_function(iterator: Any) -> Any:
        if not tf.executing_eagerly() or prepared[0] is None:
            return function(iterator)
        if isinstance(iterator, tf.data.Iterator):
            if prepared[0]() is not iterator:
                ready = rescued.at_risk or prepare(iterator, compiled, traces, tf)
                prepared[0] = weakref.ref(iterator) if ready else None
                if prepared[0] is None:
                    return function(iterator)
            return step(iterator.get_next())
        for batch in iterator:
            return step(batch)
        return function(iterator)

    return test_function


def one_after_the_other(function: Any, step: Callable[[Any], Any], several: int, tf: Any) -> Callable[[Any], Any]:
    """Keras pulls the batches of several steps inside one compiled loop, where none can be cut."""

    def test_function(iterator: Any) -> Any:
        if not tf.executing_eagerly() or not isinstance(iterator, tf.data.Iterator):
            return function(iterator)
        logs = None
        for number in range(several):
            try:
                batch = iterator.get_next()
            except tf.errors.OutOfRangeError:
                if not number:
                    raise
                break
            logs = step(batch)
        return logs

    return test_function


def predicting(model: Any, function: Any, rescue: Rescue) -> Callable[[Any], Any]:
    """Keras calls it with a list of batches."""
    tf = rescue.tf
    sliced = functools.partial(SlicedPrediction, function, tf)
    rescued = KerasDriver(rescue, "predict", sliced, function, model_ref=weakref.ref(model))
    step = rescued.around(lambda batch: function([batch]))

    def predict_function(data: Any) -> Any:
        if not tf.executing_eagerly() or not isinstance(data, (list, tuple)) or len(data) != 1:
            return function(data)
        return step(data[0])

    return predict_function


class SlicedPrediction:
    """The same as `SlicedStep`, for what changes nothing: outputs one after the other."""

    stage = "slices"

    def __init__(self, function: Any, tf: Any) -> None:
        self._function = function
        self._tf = tf
        self._parts: list[Any] = []

    def begin(self, data: Any, rows: int, k: int) -> None:
        self._parts = []

    def piece(self, data: Any, begin: int, end: int) -> None:
        self._parts.append(self._function([cut(data, begin, end, self._tf)]))

    def end(self, data: Any) -> Any:
        parts, self._parts = self._parts, []
        return self._tf.nest.map_structure(lambda *outputs: _joined(outputs, self._tf), *parts)

    def try_rows(self, data: Any, rows: int) -> None:
        self._function([cut(data, 0, rows, self._tf)])

    def put_back(self) -> None:
        self._parts = []

    def held_bytes(self) -> int:
        return 0

    def gathered_bytes(self, rows: int) -> int:
        return 0

    def disclosures(self) -> list[str]:
        return []


def _joined(outputs: Any, tf: Any) -> Any:
    if isinstance(outputs[0], tf.SparseTensor):
        return tf.sparse.concat(axis=0, sp_inputs=list(outputs))
    return tf.concat(outputs, axis=0)
