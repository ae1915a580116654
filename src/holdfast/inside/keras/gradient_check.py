"""Whether the gradient of a batch is that of its parts together: tried on a few rows, as one piece and as two.

Compared are sketches of the gradients, which take no memory.

A loss over the whole batch (contrastive, in-batch negatives, a correlation, a softmax over rows) fails here, and so does a
layer that looks across rows; where the code comes from does not matter. Left out are batch normalisation and what draws
at random: those differ by themselves and are disclosed.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from typing import Any, Callable, Iterator

from ..piece_sizes import bounds
from ..rescue_engine import CannotSplit
from . import seams
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
    with without_chance(model), without_tf32():
        few = with_a_gradient(lambda count: micro.gradient(data, [(0, count)]), few, min(rows, fits) // 2 * 2)
        if _alike_in_parts(micro, model, data, few):
            return
        if is_own(model, "train_step") and micro.calls.updates == 1:
            # It may change gradients before the optimizer sees them (clipping by hand): summed up before that.
            micro.calls.at_tape, micro.calls.sums_rows = True, False
            micro.trace_anew()
            with contextlib.suppress(CannotSplit):  # the reason below says more
                if _alike_in_parts(micro, model, data, few):
                    return
    raise CannotSplit(refusal(model))


def with_a_gradient(of_rows: Callable[[int], Any], few: int, most: int) -> int:
    """More rows where those few have none: no pairs among them, a margin that all keep to. Zeros are alike however they are cut."""
    while not (of_rows(few) != 0.0).any():
        if few >= most:
            raise CannotSplit(
                "no row that was tried has a gradient, so it cannot be told whether its loss is over the whole batch"
            )
        few = min(2 * few, most)
    return few


def _alike_in_parts(micro: Any, model: Any, data: Any, few: int) -> bool:
    whole, halves = micro.gradient(data, [(0, few)]), micro.gradient(data, bounds(few, 2))
    most = tolerance(model)
    if alike(whole, halves, most):
        return True
    if alike(whole, 2 * halves, most):  # a loss that adds rows up instead of taking their mean
        micro.calls.sums_rows = True
        micro.trace_anew()
        halves = micro.gradient(data, bounds(few, 2))
    # What differs from one time to the next tells nothing.
    return alike(whole, halves, most) or not alike(whole, micro.gradient(data, [(0, few)]), most)


@contextlib.contextmanager
def without_tf32() -> Iterator[None]:
    """TensorFlow's default for products of matrices on a GPU, with ten bits: kernels for few rows may not use it, and what
    is compared would be their rounding."""
    config: Any = getattr(sys.modules.get("tensorflow"), "config", None)
    if config is None or not config.experimental.tensor_float_32_execution_enabled():
        yield
        return
    config.experimental.enable_tensor_float_32_execution(False)
    try:
        yield
    finally:
        config.experimental.enable_tensor_float_32_execution(True)


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
    own = [f"a {name} of its own" for name in seams.STEP_METHODS if is_own(model, name)]
    loss = getattr(model, "loss", None)
    if loss is not None and not isinstance(loss, (str, dict, list, tuple)):
        module = str(getattr(loss, "__module__", "") or type(loss).__module__)
        own += [] if seams.is_of_keras(module) else ["a loss of its own"]
    return ", ".join(own)


def is_own(model: Any, method: str) -> bool:
    """Not Keras's, but the script's."""
    return not seams.is_of_keras(getattr(type(model), method).__module__)


def tolerance(model: Any) -> float:
    half = any("16" in str(getattr(layer, "compute_dtype", "")) for layer in seams.layers_of(model))
    return DEVIATES_IN_HALF if half else DEVIATES


def alike(one: Any, other: Any, deviates: float) -> bool:
    size = float((one * one).sum()) ** 0.5
    return bool(float(((one - other) ** 2).sum()) ** 0.5 <= deviates * max(size, 1e-30))


@contextlib.contextmanager
def without_chance(model: Any) -> Iterator[None]:
    """What differs from call to call, and from batch to batch by design, is left out of a comparison."""
    with without_any_draws(), contextlib.ExitStack() as stack:
        for layer in seams.layers_of(model, include_self=False):
            if "BatchNorm" in type(layer).__name__ or getattr(layer, "seed_generator", None) is not None:
                stack.enter_context(replaced_here(layer, "call", _without_training(layer.call)))
        yield


def _without_training(call: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(call)
    def without(*args: Any, **kwargs: Any) -> Any:
        return call(*args, **{**kwargs, "training": False})

    return without
