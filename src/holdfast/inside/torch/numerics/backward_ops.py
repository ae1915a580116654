"""The first operation of a backward pass that makes non-finite gradients out of finite ones."""

from __future__ import annotations

from typing import Any, List, Optional, Tuple

from ...numerics.events import Place
from ..autograd_graph import is_leaf, number_of, walked
from ..tensor_nests import tensors_of
from .checked_ops import CheckedOps, OfNode
from .finite import all_finite, is_float
from .graph_values import op_of
from .op_values import clause


def culprit(torch: Any, loss: Any, models: List[Any], ops: CheckedOps) -> Optional[Tuple[Place, Optional[str]]]:
    """Runs the backward pass of `loss`, which nothing else will; gradients of parameters are not touched."""
    losses = [each for each in tensors_of(loss, torch) if each.requires_grad]
    parameters = [p for model in models for p in model.parameters() if p.requires_grad]
    if not losses or not parameters:
        return None
    found: List[Any] = []

    def follow(node: Any) -> Any:
        def after(to_inputs: Any, from_outputs: Any) -> None:
            if not found and _finite(torch, from_outputs) and not _finite(torch, to_inputs):
                found.append(node)

        return node.register_hook(after)

    hooks = [follow(node) for node in walked([losses[0].grad_fn], []) if not is_leaf(node)]
    try:
        torch.autograd.grad(losses[0].sum(), parameters, allow_unused=True)
    finally:
        for hook in hooks:
            hook.remove()
    return _described(torch, found[0], ops) if found else None


def _finite(torch: Any, gradients: Any) -> bool:
    return all(all_finite(torch, each) for each in gradients if each is not None and is_float(torch, each))


def _described(torch: Any, node: Any, ops: CheckedOps) -> Tuple[Place, Optional[str]]:
    known = ops.nodes.get(node) or _made_around(node, ops)
    op = op_of(node)
    if known is None:
        return {"op": op, "layer": None}, None
    made = ops.began(tensors_of(known.operands, torch))  # infinite already, and hidden from the loss by a choice
    if made is not None and not made.from_outside:
        return made.place, None if made.values is None else f"the gradient of {_article(made.values)}"
    said = clause(torch, op, known.operands) or clause(torch, known.op, known.operands)
    place: Place = {**known.place, "op": op if known.op in ("", "unknown") else known.op}
    return place, None if said is None else f"the gradient of {_article(said)}"


def _article(said: str) -> str:
    return f"the {said}" if said.startswith("square root") else said


def _made_around(node: Any, ops: CheckedOps) -> Optional[OfNode]:
    """A function of PyTorch's makes several nodes, and gives the last one: the first that is known and made later."""
    number = number_of(node)
    later = [(number_of(one), known) for one, known in ops.nodes.items() if number_of(one) >= number]
    return min(later, key=lambda pair: pair[0])[1] if later else None
