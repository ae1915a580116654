"""The step of a loop around tf.GradientTape: the call of a tf.function that trains, the pull before it, the tape."""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..never_raise import on_error
from ..telemetry import now
from . import seams
from .loop import Loop
from .nesting import nesting
from .numerics.watches import WATCHED
from .optimizer import TRAINS


def take_over_calls(loop: Loop, tf: Any) -> None:
    """Every tf.function passes here; one that does not train pays a look at its own attributes, 0.2 µs."""
    function_class = loop.function_class
    call = getattr(function_class, seams.CALL)
    executing_eagerly = tf.executing_eagerly
    tell_failure = on_error(loop.failed)

    @functools.wraps(call)
    def _call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if nesting.depth or not executing_eagerly():
            return call(self, *args, **kwargs)
        kept = loop.kept
        if kept is not None and (kept.checkpoints.goal is not None or TRAINS in self.__dict__):
            args, kwargs = kept.step_begins(sys._getframe(1), (args, kwargs))
        if TRAINS not in self.__dict__:
            began = now()
            with on_error(lambda error: loop.failed(error) if TRAINS in self.__dict__ else None):
                result = call(self, *args, **kwargs)
            if TRAINS in self.__dict__:  # it was traced just now, and applies gradients
                loop.called(self, began, 1, args, result)
                loop.watch(self, call, (args, kwargs), result)
            return result
        traces = self.experimental_get_tracing_count()
        if kept is not None:
            kept.updates()
        nesting.depth += 1
        began = now()
        try:
            with tell_failure:
                watched = self.__dict__.get(WATCHED)
                result = call(self, *args, **kwargs) if watched is None else watched((args, kwargs))
        finally:
            nesting.depth -= 1
        loop.called(self, began, self.experimental_get_tracing_count() - traces, args, result)
        return result

    setattr(function_class, seams.CALL, _call)


def take_over_pulls(loop: Loop, tf: Any) -> None:
    """`next(iterator)` and `iterator.get_next()` of tf.data end in one method."""
    owned = seams.iterator_class()
    pull = getattr(owned, seams.NEXT)
    executing_eagerly = tf.executing_eagerly
    out_of_range = tf.errors.OutOfRangeError

    @functools.wraps(pull)
    def _next_internal(self: Any) -> Any:
        kept = loop.kept
        if nesting.depth or not executing_eagerly():
            if kept is not None and not nesting.depth:
                kept.asked_in_a_function()
            return pull(self)
        position = kept.asked(self, sys._getframe(1)) if kept is not None else None
        began = now()
        try:
            batch = pull(self)
        except out_of_range:
            loop.exhausted(self)
            if position is not None:
                kept.over(position)
            raise
        loop.pulled(self, now() - began, batch)
        if position is not None:
            kept.came(position, batch)
        return batch

    setattr(owned, seams.NEXT, _next_internal)


def take_over_tapes(loop: Loop, tf: Any) -> None:
    tape: Any = tf.GradientTape
    tape.gradient = Gradient(tape.gradient, loop, tf)


class Gradient:
    """`tape.gradient`, noticed for its target, the loss; untouched while a tf.function is traced."""

    def __init__(self, method: Any, loop: Loop, tf: Any) -> None:
        self._method = method
        self._loop = loop
        self._executing_eagerly = tf.executing_eagerly

    def __get__(self, tape: Any, owner: Any = None) -> Any:
        if tape is None:
            return self._method
        gradient = self._method.__get__(tape, owner)
        if nesting.depth or not self._executing_eagerly():
            return gradient

        def noticed(target: Any, *args: Any, **kwargs: Any) -> Any:
            self._loop.target(target)
            result = gradient(target, *args, **kwargs)
            self._loop.gradient_taken(args[0] if args else kwargs.get("sources"))
            return result

        return noticed
