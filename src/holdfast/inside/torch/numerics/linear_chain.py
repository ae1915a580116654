"""Whether nothing but sums lies between what a model is given and what it gives: read off autograd's graph."""

from __future__ import annotations

from typing import Any, Dict, List

from ..autograd_graph import is_leaf
from .graph_values import op_of
from .loss_graph import ACTIVATIONS, below, past_shapes

DENSE = ("addmm", "mm", "linear", "mkldnn_linear")
DROPS = ("mul", "native_dropout")  # what dropout leaves in the graph
MOST = 64


def linear_chain(node: Any, names: Dict[int, str]) -> List[str]:
    """The layers, first to last, from the node that made the output; none where something else is among them, or where an inner one
    is narrower than both ends (it is meant to hold less then)."""
    node = past_shapes(node)
    if node is not None and not is_leaf(node) and op_of(node) in ACTIVATIONS:  # the last layer's own
        node = past_shapes(below(node)[0]) if below(node) else None
    weights: List[Any] = []
    for _ in range(MOST):
        if node is None or is_leaf(node):
            break
        inner = [past_shapes(one) for one in below(node)]
        given = [one for one in inner if one is not None and not is_leaf(one)]
        kernels = [one.variable for one in inner if one is not None and is_leaf(one) and one.variable.dim() == 2]
        op = op_of(node)
        if op in DENSE and len(kernels) == 1 and len(given) <= 1:
            weights.append(kernels[0])
        elif not (op in DROPS and len(given) == 1 and not kernels):
            return []
        node = given[0] if given else None
    if node is not None or len(weights) < 2 or any(id(weight) not in names for weight in weights):
        return []
    ends = min(weights[-1].shape[1], weights[0].shape[0])
    if min(weight.shape[0] for weight in weights[1:]) < ends:
        return []
    return [names[id(weight)].rsplit(".", 1)[0] for weight in reversed(weights)]
