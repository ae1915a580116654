"""Activations of the step at hand, as autograd has saved them: units that are dead or saturated."""

from __future__ import annotations

from typing import Any, Dict, List, Tuple

from ..autograd_graph import is_leaf, number_of, walked
from .finite import is_float
from .graph_values import op_of, saved
from .loss_graph import below, parameter_of
from .tensor_facts import some_of

NODES = 1500  # of a graph: an unrolled loop has more, and its units are told by nothing here
ROWS = 256
KINDS = {"relu": "relu", "tanh": "tanh", "sigmoid": "sigmoid", "threshold": "relu"}
NEAR_ONE = 0.99
TWO_SIDES = {"tanh": (-NEAR_ONE, NEAR_ONE), "sigmoid": (1 - NEAR_ONE, NEAR_ONE)}


def units_of(torch: Any, loss: Any, names: Dict[int, str]) -> List[Tuple[str, str, Any]]:
    """(layer, activation, a tensor with the dead share and the saturated one), in the order of the pass; -1: not known."""
    nodes = [node for node, _ in zip(walked([loss.grad_fn], []), range(NODES + 1)) if not is_leaf(node)]
    if len(nodes) > NODES:
        return []
    found: Dict[Any, Tuple[str, str, Any]] = {}
    for node in sorted(nodes, key=number_of):
        kind = KINDS.get(op_of(node))
        result = saved(node, "result") if kind is not None else None
        if kind is None or result is None or not is_float(torch, result) or result.dim() < 2:
            continue
        inner = below(node)
        parameter = parameter_of(inner[0]) if inner else None
        layer = names.get(id(parameter), "").rsplit(".", 1)[0] or f"{kind} {len(found) + 1}"
        if (layer, kind) not in found:
            found[layer, kind] = (layer, kind, _shares(torch, kind, result.detach()[:ROWS]))
    return list(found.values())


def _shares(torch: Any, kind: str, value: Any) -> Any:
    with torch.no_grad():
        unit_axis = 1 if value.dim() > 3 else value.dim() - 1
        over = [axis for axis in range(value.dim()) if axis != unit_axis]
        unknown = value.new_full((), -1.0, dtype=torch.float32)
        dead = (value.amax(over) == value.amin(over)).float().mean() if value.shape[0] > 1 else unknown
        if kind not in TWO_SIDES:
            return torch.stack([dead, unknown])
        low, high = TWO_SIDES[kind]
        some = some_of(value)
        return torch.stack([dead, ((some < low) | (some > high)).float().mean()])
