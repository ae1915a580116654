"""What autograd has saved of a forward pass: the operation whose result was not finite, told without running anything."""

from __future__ import annotations

import re
from typing import Any, List, Optional, Tuple

from .. import seams
from ..autograd_graph import is_leaf, number_of, walked
from .finite import all_finite, is_float
from .op_values import clause

NODES = 20_000
RISKY = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "div", "reciprocal", "exp", "pow", "acos", "asin", "softmax",
         "log_softmax", "mse_loss", "mul")  # fmt: skip
PARTS = ("self", "other", "exponent", "target")
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def op_of(node: Any) -> str:
    """`LogSoftmaxBackward0` -> `log_softmax`."""
    name = re.sub(r"Backward\d*$", "", node.name().rsplit("::", 1)[-1])
    return _WORDS.sub("_", name).lower()


def saved(node: Any, part: str) -> Any:
    """None where it is not saved, freed, or was changed since."""
    try:
        return getattr(node, seams.SAVED_TENSORS + part, None)
    except RuntimeError:
        return None


def first_bad_node(torch: Any, loss: Any) -> Optional[Tuple[str, Optional[str], Optional[str]]]:
    """(operation, clause, dtype) of the first in the order of the pass that had finite operands and a bad result."""
    nodes = [node for node, _ in zip(walked([loss.grad_fn], []), range(NODES)) if not is_leaf(node)]
    for node in sorted(nodes, key=number_of):
        op = op_of(node)
        if op not in RISKY:
            continue
        operands = [value for value in (saved(node, part) for part in PARTS) if value is not None]
        result = saved(node, "result")
        tensors = [value for value in operands if is_float(torch, value)]
        if any(not all_finite(torch, value) for value in tensors):
            continue
        if _is_bad(torch, op, operands, result):
            kind = next(
                (str(value.dtype).replace("torch.", "") for value in (*tensors, result) if value is not None), None
            )
            return op, clause(torch, op, operands, result), kind
    return None


def _is_bad(torch: Any, op: str, operands: List[Any], result: Any) -> bool:
    if is_float(torch, result):
        return not all_finite(torch, result)
    said = clause(torch, op, operands)
    return said is not None and " in " not in said
