"""What the loops of `torch_numbers.py` and `torch_untrained.py` share: their list, their data, a small model."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

Loop = Callable[[], list[float]]
LOOPS: dict[str, Loop] = {}
STEPS, BAD = 30, 12


def loop(function: Loop) -> Loop:
    LOOPS[function.__name__] = function
    return function


def data(classes: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(STEPS, 16, 6)
    return x, (x.sum(2) > 0).long() if classes else x.sum(2, keepdim=True)


def network(out: int = 1, *last: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, out), *last)
