"""Optimizer steps outside `fit`: applied eagerly, or while a tf.function is traced."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from ..never_raise import guarded
from ..telemetry import Recorder
from . import seams
from .functions import functions_on_stack
from .loop import Loop, loop_of
from .nesting import nesting

TRAINS = "_holdfast_trains"  # on a tf.function: it applies gradients


class Apply:
    """`optimizer.apply`, noticed. While tracing, Keras's own method is handed out untouched: autograph converts a
    function by its source, and what an optimizer of the user's own relies on there must stay."""

    def __init__(self, method: Any, loop: Loop, tf: Any) -> None:
        self._method = method
        self._loop = loop
        self._executing_eagerly = tf.executing_eagerly

    def __get__(self, optimizer: Any, owner: Any = None) -> Any:
        if optimizer is None:
            return self._method
        apply = self._method.__get__(optimizer, owner)
        if nesting.depth:
            return apply
        if not self._executing_eagerly():
            self._traced(optimizer)
            return apply

        def applied(*args: Any, **kwargs: Any) -> Any:
            if self._loop.kept is not None:
                self._loop.kept.updates()
            nesting.depth += 1
            try:
                result = apply(*args, **kwargs)
            finally:
                nesting.depth -= 1
            gradients = args[0] if args else kwargs.get("grads")
            self._loop.applied(optimizer, gradients, args[1] if len(args) > 1 else kwargs.get("trainable_variables"))
            return result

        return applied

    @guarded
    def _traced(self, optimizer: Any) -> None:
        """Marks the tf.functions on the stack."""
        self._loop.begins()
        if self._loop.kept is not None:
            self._loop.kept.traced()
        functions = list(functions_on_stack(sys._getframe(1), self._loop.function_class))
        if self._loop.watches is not None:
            self._loop.watches.traced(functions, seams.graph_being_traced())
        for function in functions:
            setattr(function, TRAINS, True)
            self._loop.optimizers[function] = weakref.ref(optimizer)


def watch_optimizers(recorder: Recorder, tf: Any, optimizer_class: Any, values: Any) -> None:
    loop = loop_of(recorder, tf)
    loop.values = values
    optimizer_class.apply = Apply(optimizer_class.apply, loop, tf)
