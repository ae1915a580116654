"""A step that fails leaves no trace.

TensorFlow applies an update as soon as its gradient exists, and by then metrics, seeds and statistics have moved: a
step that runs out of memory is half done. So, while Keras's step is traced, the optimizer's update is put behind all
gradients, and every variable that is assigned before is copied first. After a failure `put_back` undoes it.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
from typing import Any, Callable, Iterator, NamedTuple, Optional

from . import seams


class Kept(NamedTuple):
    variable: Any
    copy: Any
    taken_at: Any  # the attempt it is of


class UndoLog:
    """Of one model's compiled step."""

    def __init__(self, tf: Any) -> None:
        self._tf = tf
        self.attempts = 0  # counted here, and by the step itself in `_clock`
        self._clock: Any = None
        self._updated_at: Any = None
        self._kept: dict[int, Kept] = {}
        self._tracing: Optional[int] = None  # the thread
        self._behind_barrier = False

    def keeping(self, train_step: Callable[[Any], Any], model: Any, variable_class: Any) -> Callable[[Any], Any]:
        """`train_step`, with what it assigns kept."""

        @functools.wraps(train_step)
        def step(data: Any) -> Any:
            if self._tracing is not None:
                return train_step(data)
            self._begin()
            assign = getattr(variable_class, seams.DIRECT_ASSIGN)
            with contextlib.ExitStack() as stack:
                stack.callback(setattr, self, "_tracing", None)
                stack.enter_context(replaced(variable_class, seams.DIRECT_ASSIGN, self._copying(assign)))
                for optimizer in optimizers_of(model):
                    stack.enter_context(replaced_here(optimizer, "apply", self._after_all_gradients(optimizer)))
                return train_step(data)

        return step

    def _begin(self) -> None:
        tf = self._tf
        if self._clock is None:
            with tf.init_scope():
                self._clock = tf.Variable(0, dtype=tf.int64, trainable=False)
                self._updated_at = tf.Variable(-1, dtype=tf.int64, trainable=False)
        self._tracing = threading.get_ident()
        self._behind_barrier = False
        self._seen: set[int] = set()
        self._clock.assign_add(1)

    def _copying(self, assign: Callable[[Any, Any], None]) -> Callable[[Any, Any], None]:
        def copy_and_assign(variable: Any, value: Any) -> None:
            here = threading.get_ident() == self._tracing and not self._behind_barrier
            if here and id(variable) not in self._seen and seams.value_of(variable) is not None:
                self._seen.add(id(variable))
                self._copy(variable)
            assign(variable, value)

        return copy_and_assign

    def _copy(self, variable: Any) -> None:
        kept = self._kept.get(id(variable))
        if kept is None:
            tf = self._tf
            with tf.init_scope():
                copy = tf.Variable(tf.zeros(variable.shape, seams.value_of(variable).dtype), trainable=False)
                kept = Kept(variable, copy, tf.Variable(-1, dtype=tf.int64, trainable=False))
            self._kept[id(variable)] = kept
        with self._tf.control_dependencies(
            [kept.copy.assign(seams.value_of(variable))]
        ):  # a copy not made is none to put back
            kept.taken_at.assign(self._clock)

    def _after_all_gradients(self, optimizer: Any) -> Callable[..., Any]:
        apply = optimizer.apply

        def apply_after(grads: Any, trainable_variables: Any = None) -> Any:
            tf = self._tf
            grads = list(grads)
            there = [g for g in grads if g is not None]
            if not optimizer.built and trainable_variables is not None:
                trainable_variables = list(trainable_variables)
                _build(optimizer, trainable_variables)  # what initialises its variables may not wait for a gradient
            with tf.control_dependencies([_op_of(g) for g in there] if not tf.executing_eagerly() else []):
                self._updated_at.assign(self._clock)
                self._behind_barrier = True
                try:
                    return apply(grads, trainable_variables)
                finally:
                    self._behind_barrier = False

        return apply_after

    # -- after a failure

    def put_back(self) -> str:
        """Why it cannot be, or nothing."""
        clock = int(self._clock.numpy()) if self._clock is not None else 0
        if clock not in (self.attempts, self.attempts - 1):
            return "steps were taken that were not seen"
        self._clock.assign(self.attempts)
        if int(self._updated_at.numpy()) == self.attempts:
            return "memory ran out within the update of the weights"
        for kept in self._kept.values():
            if int(kept.taken_at.numpy()) == self.attempts:
                seams.value_of(kept.variable).assign(kept.copy)
        return ""


def _build(optimizer: Any, variables: list[Any]) -> None:
    """As the first lines of Keras's `apply` do."""
    keras: Any = sys.modules["keras"]
    with keras.name_scope(optimizer.name, caller=optimizer):
        optimizer.build(variables)
    optimizer.built = True


def _op_of(gradient: Any) -> Any:
    return getattr(gradient, "values", gradient)  # of IndexedSlices


def optimizers_of(model: Any) -> list[Any]:
    """Those a training step may use: the compiled one, and further ones of the model's own."""
    found = [getattr(model, "optimizer", None), *vars(model).values()]
    unique = {id(item): item for item in found if hasattr(item, "apply_gradients") and hasattr(item, "iterations")}
    return list(unique.values())


@contextlib.contextmanager
def replaced(owner: Any, name: str, stand_in: Any) -> Iterator[None]:
    """An attribute of a class or module, for the time of a trace."""
    original = owner.__dict__[name]
    setattr(owner, name, stand_in)
    try:
        yield
    finally:
        setattr(owner, name, original)


@contextlib.contextmanager
def replaced_here(instance: Any, name: str, stand_in: Any) -> Iterator[None]:
    """An attribute of one object. Past its `__setattr__`: Keras would track it."""
    instance.__dict__[name] = stand_in
    try:
        yield
    finally:
        instance.__dict__.pop(name, None)
