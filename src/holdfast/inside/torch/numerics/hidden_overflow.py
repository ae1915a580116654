"""Infinities of half precision that a later operation hides: one divided by them is 0, so the loss stays finite."""

from __future__ import annotations

from typing import Any, Optional

from ..autograd_graph import is_leaf, number_of, walked
from .finite import is_float
from .graph_values import op_of, saved

NODES = 3000
DIVIDES = ("rsqrt", "reciprocal")  # of no number that float16 holds is their result 0


def hidden_overflow(torch: Any, loss: Any) -> Optional[str]:
    """The first operation of the graph that was given Inf, in float16 on the CPU. A mask of -Inf is none."""
    nodes = [node for node, _ in zip(walked([loss.grad_fn], []), range(NODES)) if not is_leaf(node)]
    for node in sorted(nodes, key=number_of):
        op = op_of(node)
        result, given = saved(node, "result"), (saved(node, "self"), saved(node, "other"))
        if op in DIVIDES and _is_half(torch, result) and bool((result == 0).any()):
            return op
        if any(_is_half(torch, one) and bool(torch.isposinf(one).any()) for one in given):
            return op
    return None


def _is_half(torch: Any, value: Any) -> bool:
    return is_float(torch, value) and value.dtype is torch.float16 and value.device.type == "cpu"
