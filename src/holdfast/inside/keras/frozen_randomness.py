"""While a whole is compared with its parts, what Keras and TensorFlow draw at random is a constant."""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Iterator

from ..frozen_randomness import constant_here
from ..torch.frozen_randomness import OF_THE_WAY, SPREADS, without_draws
from . import seams


@contextlib.contextmanager
def without_any_draws() -> Iterator[None]:
    """Layers, `keras.random` and the backend's own functions, whoever calls them."""
    tensorflow, torch = sys.modules.get("tensorflow"), sys.modules.get("torch")
    with contextlib.ExitStack() as stack:
        for backend in ("tensorflow", "torch"):
            drawing = seams.random_functions(backend)
            if drawing is not None:
                _still(stack, drawing)
        if tensorflow is not None:
            _still(stack, tensorflow.random)
            stack.enter_context(constant_here(tensorflow.nn, "dropout", None))
        if torch is not None and hasattr(torch, "nn"):
            stack.enter_context(without_draws(torch))
        yield


def _still(stack: contextlib.ExitStack, drawing: Any) -> None:
    for name in ("normal", "truncated_normal"):
        stack.enter_context(constant_here(drawing, name, _near_the_mean))
    stack.enter_context(constant_here(drawing, "uniform", _on_the_way))
    stack.enter_context(constant_here(drawing, "randint", lambda shape=None, minval=0, *_, **__: minval))
    for name, value in (("categorical", 0), ("binomial", 0), ("gamma", 1), ("beta", OF_THE_WAY)):
        stack.enter_context(constant_here(drawing, name, lambda *_, value=value, **__: value))
    for name in ("dropout", "shuffle"):
        stack.enter_context(constant_here(drawing, name, None))


def _near_the_mean(shape: Any = None, mean: Any = 0.0, stddev: Any = 1.0, *_: Any, **__: Any) -> Any:
    return mean + SPREADS * stddev


def _on_the_way(shape: Any = None, minval: Any = 0.0, maxval: Any = None, *_: Any, **__: Any) -> Any:
    least = 0.0 if minval is None else minval
    most = 1.0 if maxval is None else maxval
    if isinstance(least, int) and isinstance(most, int) and maxval is not None:  # whole numbers, perhaps
        return least
    return least + OF_THE_WAY * (most - least)
