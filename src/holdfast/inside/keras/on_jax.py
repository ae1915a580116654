"""State of a fit on the JAX backend: a step is given all variables as values and hands them back, and while `fit` runs the
variables themselves are empty. Those values are given to the next step to write over, so what is saved is a copy."""

from __future__ import annotations

import sys
import weakref
from typing import Any, Callable, Dict, Iterator, List, Optional

from .. import randomness
from ..telemetry import now
from . import seams
from .checkpoint import CheckpointWriter
from .data_position import OF_PYTHON, not_repeated
from .fit_progress import Fit


class JaxState:
    pulls_in_walk = False  # the batch that is due is pulled by what stands in for Keras's train function
    is_of_tf_data = False

    def __init__(self, jax: Any) -> None:
        self._numpy: Any = sys.modules["numpy"]
        self._keras: Any = sys.modules["keras"]
        self._jax_numpy: Any = jax.numpy
        self._held: Dict[int, Any] = {}  # by the variable's id: what the step under way was given

    def why_not(self, model: Any, adapter: Any = None) -> str:
        if self._keras.distribution.distribution() is not None:
            return "checkpoints are not made of a model that is distributed by Keras yet"
        return not_repeated(adapter, OF_PYTHON)  # loaders of PyTorch have random numbers of their own

    def random_state(self) -> Dict[str, Any]:
        return randomness.capture()

    def put_random_state(self, state: Dict[str, Any]) -> None:
        randomness.restore(state)

    # -- variables

    def given_to(self, model: Any, values: Any, do: Callable[[], None]) -> Any:
        """`do` reads and writes what the step was given, in place of the variables. Returns what the step is to be given; None where
        that is no value for each variable: a step of the user's own may hand on something else."""
        variables = [
            model.trainable_variables,
            model.non_trainable_variables,
            model.optimizer.variables,
            model.metrics_variables,
        ]
        if [len(group) for group in variables] != [len(group) for group in values]:
            return None
        pairs = [pair for group in zip(variables, values) for pair in zip(*group)]
        self._held = {id(variable): value for variable, value in pairs}
        try:
            do()
            return tuple([self._held[id(variable)] for variable in group] for group in variables)
        finally:
            self._held = {}

    def read(self, variable: Any) -> Any:
        held = self._held.get(id(variable))
        return self._numpy.array(seams.value_of(variable) if held is None else held)

    def put(self, variable: Any, archive: Any, name: str, described: List[Any]) -> None:
        dtype, array = self._jax_numpy.dtype(described[2]), archive[name]
        if dtype.kind == "V":  # of a type that NumPy has not: its bits are kept as whole numbers
            array = array.view(dtype)
        value = self._jax_numpy.array(array)
        if id(variable) in self._held:
            self._held[id(variable)] = value
        else:
            variable.assign(value)

    # -- data

    def needs_iterator_state(self, _adapter: Any) -> bool:
        return False  # NumPy's own random state decides on the order, and that is kept

    def pull(self, iterator: Any) -> None:
        next(iterator)

    def loader_state(self, _epoch_iterator: Any) -> Any:
        return None

    def put_loader_state(self, _epoch_iterator: Any, _state: Any) -> None:
        pass

    def iterator_state(self, _iterator: Any) -> Any:
        return None

    def put_iterator_state(self, iterator: Any, state: Any) -> None:
        raise NotImplementedError

    def epoch_iterator(self, model: Any, **given: Any) -> Any:
        return seams.epoch_iterator_class_of("jax")(steps_per_execution=model.steps_per_execution, **given)

    def build(self, model: Any, epoch_iterator: Any) -> None:
        seams.build(model, epoch_iterator)


class Batches:
    """The batch that was pulled, and those after it; counted as Keras takes them."""

    def __init__(self, first: Any, iterator: Iterator[Any]) -> None:
        self._first: Any = [first]
        self._iterator = iterator
        self.taken = 0

    def __iter__(self) -> Batches:
        return self

    def __next__(self) -> Any:
        batch = self._first.pop() if self._first else next(self._iterator)
        self.taken += 1
        return batch


def kept_with_state(
    run: Callable[..., Any], keep: CheckpointWriter, fit: Fit, model_ref: Callable[[], Any]
) -> Callable[..., Any]:
    """`run` with its batch pulled outside, as on TensorFlow, and checkpoints made of what it is given."""
    state: Any = keep.state
    last: List[Callable[[], Optional[Any]]] = [lambda: None]

    def train_function(given: Any, iterator: Any) -> Any:
        call = keep.call
        if call is None:
            return run(given, iterator)
        if last[0]() is not iterator:
            last[0] = _reference(iterator)
            keep.fresh(iterator)
        began = now()
        if began >= keep.next_at:
            keep.approach(iterator)
            began = now()
        batches = Batches(next(iterator), iterator)
        fit.pulled(now() - began, ())
        if keep.step_ready or call.restore is not None:
            known = state.given_to(model_ref(), given, lambda: keep.before_step(call))
            if known is None:
                keep.step_ready = False
                keep.cannot()
            given = given if known is None else known
        result = run(given, batches)
        call.position.trained(batches.taken)
        return result

    return train_function


def _reference(iterator: Any) -> Callable[[], Any]:
    try:
        return weakref.ref(iterator)
    except TypeError:  # of a list, in a loop of the user's own
        return lambda: iterator
