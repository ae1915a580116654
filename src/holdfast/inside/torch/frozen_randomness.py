"""While a whole is compared with its parts, what PyTorch draws at random is a constant: other draws are another result."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator

from ..frozen_randomness import constant_here

SPREADS = 0.3  # of a standard deviation from the mean: at the mean itself some gradients vanish
OF_THE_WAY = 0.4  # from the least to the largest


@contextlib.contextmanager
def without_draws(torch: Any) -> Iterator[None]:
    like = {
        "randn": SPREADS, "randn_like": SPREADS, "rand": OF_THE_WAY, "rand_like": OF_THE_WAY, "bernoulli": 1.0,
    }  # fmt: skip
    functional = torch.nn.functional
    with contextlib.ExitStack() as stack:
        for name, value in like.items():
            stack.enter_context(constant_here(torch, name, lambda *_, value=value, **__: value))
        stack.enter_context(constant_here(torch, "randint", _least))
        stack.enter_context(constant_here(torch, "normal", _near_the_mean))
        for name in ("normal_", "uniform_"):
            stack.enter_context(constant_here(torch.Tensor, name, lambda *_, **__: SPREADS))
        for name in ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"):
            stack.enter_context(constant_here(functional, name, None))
        yield


def _least(first: Any, second: Any = None, *_: Any, **__: Any) -> Any:
    """`randint([low,] high, size)`."""
    return first if isinstance(second, int) else 0


def _near_the_mean(mean: Any = 0.0, std: Any = 1.0, *_: Any, **__: Any) -> Any:
    return mean + SPREADS * std
