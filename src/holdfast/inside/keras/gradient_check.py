"""Whether the gradient of a batch is that of its parts together: tried on a few rows, as one piece and as two.

Compared are sketches of the gradients, which take no memory: some numbers of each variable's, and its sum.

A loss over the whole batch (contrastive, in-batch negatives, a correlation, a softmax over rows) fails here, and so does a
layer that looks across rows; where the code comes from does not matter. Left out are batch normalisation and what draws
at random: those differ by themselves and are disclosed.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable, Iterator

from ..piece_sizes import bounds
from ..rescue_engine import CannotSplit
from .frozen_randomness import without_any_draws
from .undo import replaced_here

DEVIATES = 0.02  # between whole and sliced gradients: rounding is far below, another sum far above…
DEVIATES_IN_HALF = 0.2  # …and in float16 and bfloat16, whose rounding is at some per cent
FEW_ROWS = 8
OF_MANY = 256  # rows: so many, and a few of them are surely no large part


def check_that_parts_make_the_whole(micro: Any, model: Any, data: Any, rows: int, fits: int) -> None:
    """Or CannotSplit. `micro` computes gradients and puts back what that changed; a piece of `fits` rows fits."""
    few = few_of(rows, fits)
    if few < 2:
        return
    with without_chance(model):
        whole, halves = micro.gradient(data, [(0, few)]), micro.gradient(data, bounds(few, 2))
        most = tolerance(model)
        if alike(whole, halves, most):
            return
        if alike(whole, 2 * halves, most):  # a loss that adds rows up instead of taking their mean
            micro.calls.sums_rows = True
            micro.trace_anew()
            halves = micro.gradient(data, bounds(few, 2))
        if not alike(whole, halves, most) and alike(whole, micro.gradient(data, [(0, few)]), most):
            raise CannotSplit(refusal(model))


def few_of(rows: int, fits: int) -> int:
    """An even number, so that the halves have the same share."""
    few = FEW_ROWS if rows >= OF_MANY else max(2, min(FEW_ROWS, fits) // 2 * 2)
    return min(few, rows // 2 * 2)


def refusal(model: Any) -> str:
    own = own_code(model)
    return "the gradient of a batch is not that of its parts together: its loss is over the whole batch" + (
        f" ({own})" if own else ""
    )


def own_code(model: Any) -> str:
    """What of the step is not Keras's, in words; nothing where all of it is."""
    own = [
        f"a {name} of its own"
        for name in ("train_step", "compute_loss", "_compute_loss")
        if not getattr(type(model), name).__module__.startswith("keras.src.")
    ]
    loss = getattr(model, "loss", None)
    if loss is not None and not isinstance(loss, (str, dict, list, tuple)):
        module = str(getattr(loss, "__module__", "") or type(loss).__module__)
        own += [] if module.startswith("keras.src.") else ["a loss of its own"]
    return ", ".join(own)


def tolerance(model: Any) -> float:
    half = any("16" in str(getattr(layer, "compute_dtype", "")) for layer in model._flatten_layers())
    return DEVIATES_IN_HALF if half else DEVIATES


def alike(one: Any, other: Any, deviates: float) -> bool:
    size = float((one * one).sum()) ** 0.5
    return bool(float(((one - other) ** 2).sum()) ** 0.5 <= deviates * max(size, 1e-30))


@contextlib.contextmanager
def without_chance(model: Any) -> Iterator[None]:
    """What differs from call to call, and from batch to batch by design, is left out of a comparison."""
    with without_any_draws(), contextlib.ExitStack() as stack:
        for layer in model._flatten_layers(include_self=False):
            if "BatchNorm" in type(layer).__name__ or getattr(layer, "seed_generator", None) is not None:
                stack.enter_context(replaced_here(layer, "call", _without_training(layer.call)))
        yield


def _without_training(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def without(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **{**kwargs, "training": False})

    return without
