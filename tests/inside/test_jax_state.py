"""What a step of Keras on JAX is given, and what is done where it is not what Keras gives."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy
import pytest

from holdfast.inside.keras.on_jax import JaxState, kept_with_state


def _model() -> Any:
    one, other = (SimpleNamespace(_value=None) for _ in range(2))
    optimizer = SimpleNamespace(variables=[])
    return SimpleNamespace(
        trainable_variables=[one], non_trainable_variables=[other], optimizer=optimizer, metrics_variables=[]
    )


class _Keep:
    def __init__(self, state: JaxState) -> None:
        self.state, self.next_at, self.step_ready, self.refused = state, float("inf"), True, 0
        self.trained: list[int] = []
        self.call = SimpleNamespace(restore=None, position=SimpleNamespace(trained=self.trained.append))
        self.read: list[Any] = []

    def fresh(self, _iterator: Any) -> None: ...

    def before_step(self, _call: Any) -> None:
        self.step_ready = False
        self.read.append(self.state.read(model.trainable_variables[0]).tolist())

    def cannot(self) -> None:
        self.refused += 1


model = _model()


@pytest.fixture(autouse=True)
def keras(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither Keras nor JAX is imported here: processes that are forked later could not bear their threads."""
    monkeypatch.setitem(sys.modules, "keras", SimpleNamespace())


def _stepped(given: Any) -> tuple[_Keep, Any]:
    keep = _Keep(JaxState(SimpleNamespace(numpy=numpy)))
    fit = SimpleNamespace(pulled=lambda *_: None)
    step = kept_with_state(lambda state, batches: (next(batches), state), keep, fit, lambda: model)  # type: ignore[arg-type]
    return keep, step(given, iter([7, 8]))


def test_what_is_saved_is_what_the_step_is_given_and_it_gets_the_batch_that_was_pulled() -> None:
    values = [numpy.ones(2)], [numpy.zeros(1)], [], []
    keep, (batch, given) = _stepped(values)
    assert keep.read == [[1.0, 1.0]] and not keep.refused
    assert batch == 7 and keep.trained == [1]
    assert [len(group) for group in given] == [1, 1, 0, 0] and given[0][0] is values[0][0]


def test_a_step_that_hands_on_something_else_is_left_alone_and_that_is_said() -> None:
    values = ([numpy.ones(2)], [numpy.zeros(1)], [], [numpy.ones(1)])
    keep, (_, given) = _stepped(values)
    assert given is values and keep.refused == 1 and not keep.read and not keep.step_ready
