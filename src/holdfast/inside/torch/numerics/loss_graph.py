"""Which loss a graph ends in, what went into it, and which activation came last: read off autograd's graph, at no cost to
the steps that are not looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Tuple

from ..autograd_graph import is_leaf
from .graph_values import op_of, saved

NEAR = 40  # nodes from the loss down, among which a loss function is looked for
# Operation -> (name, family, whether it takes logits).
KNOWN: Dict[str, Tuple[str, str, Optional[bool]]] = {
    "nll_loss": ("nll_loss", "nll", False),
    "nll_loss2_d": ("nll_loss", "nll", False),
    "binary_cross_entropy": ("binary_cross_entropy", "binary", False),
    "binary_cross_entropy_with_logits": ("binary_cross_entropy_with_logits", "binary", True),
    "mse_loss": ("mse_loss", "regression", None),
    "smooth_l1_loss": ("smooth_l1_loss", "regression", None),
    "huber_loss": ("huber_loss", "regression", None),
    "soft_margin_loss": ("soft_margin_loss", "hinge", None),
    "multi_margin_loss": ("multi_margin_loss", "hinge", None),
    "multilabel_margin_loss": ("multilabel_margin_loss", "hinge", None),
}
ACTIVATIONS = {"softmax": "softmax", "sigmoid": "sigmoid", "tanh": "tanh", "relu": "relu", "log_softmax": "log_softmax",
               "log_sigmoid_forward": "log_sigmoid", "leaky_relu": "leaky_relu", "gelu": "gelu", "silu": "silu",
               "softplus": "softplus", "elu": "elu", "threshold": "relu", "clamp_min": "relu", "clamp": None}  # fmt: skip
LINEAR = frozenset({"addmm", "mm", "bmm", "convolution", "mkldnn_linear", "baddbmm", "addbmm", "native_batch_norm",
                    "native_layer_norm", "mkldnn_convolution", "matmul", "linear"})  # fmt: skip
SHAPES = frozenset({"view", "reshape", "unsafe_view", "squeeze", "unsqueeze", "flatten", "transpose", "permute", "t",
                    "expand", "to_copy", "alias", "clone", "select", "slice", "reshape_alias", "as_strided", "cast",
                    "unsafe_split", "split", "contiguous", "index"})  # fmt: skip

TURNED = frozenset({"t", "transpose", "permute"})


@dataclass
class LossFound:
    name: str
    family: Optional[str]
    from_logits: Optional[bool]
    below: Any  # the node that made what goes into it
    output: Any  # that value, where autograd has saved it
    target: Any
    log_probabilities: Any = None  # of a cross entropy: what its logits became
    compared: Any = None  # the shape of a difference that the script takes itself
    classes: int = 0  # of a loss whose target is class numbers
    ignored: Optional[int] = None  # the class number that is passed over


def below(node: Any) -> List[Any]:
    return [one for one, _ in node.next_functions if one is not None]


def _from_the_top(loss: Any, not_past: FrozenSet[str] = frozenset()) -> Iterator[Any]:
    todo, seen = [loss.grad_fn], set()  # type: ignore[var-annotated]
    while todo and len(seen) < NEAR:
        node = todo.pop(0)
        if node is None or node in seen or is_leaf(node):
            continue
        seen.add(node)
        yield node
        if op_of(node) not in not_past:
            todo += below(node)


def found_in(loss: Any) -> Optional[LossFound]:
    return next(losses_in(loss), None)


def losses_in(loss: Any) -> Iterator[LossFound]:
    """Of a sum of several, each; what lies below one belongs to it."""
    todo, seen = [loss.grad_fn], set()  # type: ignore[var-annotated]
    while todo and len(seen) < NEAR:
        node = todo.pop(0)
        if node is None or node in seen or is_leaf(node):
            continue
        seen.add(node)
        found = _at(node)
        if found is not None:
            yield found
        else:
            todo += below(node)


def _at(node: Any) -> Optional[LossFound]:
    op = op_of(node)
    if op in KNOWN:
        return _known(node, op)
    if op == "mul" and (soft := _soft_cross_entropy(node)) is not None:
        return soft
    if op == "ctc_loss":
        logs = saved(node, "log_probs")
        return LossFound("ctc_loss", "ctc", None, _made_by(below(node)[0]), logs, None) if below(node) else None
    if op == "sub" and (divergence := _divergence(node)) is not None:
        return divergence
    return _difference(node, op) if op in ("pow", "abs") else None


def _known(node: Any, op: str) -> LossFound:
    name, family, logits = KNOWN[op]
    target, given = saved(node, "target"), saved(node, "self")
    made_by = below(node)[0] if below(node) else None
    if family != "nll":
        return LossFound(name, family, logits, _made_by(made_by), given, target)
    under = past_shapes(made_by)
    found = LossFound(name, family, logits, _made_by(made_by), given, target)
    if under is not None and op_of(under) == "log_softmax":
        inner = below(under)[0] if below(under) else None
        value = _result_of(inner)
        found = LossFound("cross_entropy", "sparse", True, _made_by(inner), value, target, saved(under, "result"))
    found.classes = int(given.shape[1]) if given is not None and given.dim() > 1 else 0
    ignored = saved(node, "ignore_index")
    found.ignored = None if ignored is None else int(ignored) - (1 << 64 if ignored >= 1 << 63 else 0)
    return found


def _soft_cross_entropy(node: Any) -> Optional[LossFound]:
    """`cross_entropy` with probabilities as its target: their product with the logarithms."""
    for position, one in enumerate(below(node)):
        under = past_shapes(one)
        if under is not None and op_of(under) == "log_softmax":
            target = saved(node, "other") if position == 0 else saved(node, "self")
            if target is None or not target.dim():
                return None
            inner = below(under)[0] if below(under) else None
            logs = saved(under, "result")
            return LossFound("cross_entropy", "categorical", True, _made_by(inner), _result_of(inner), target, logs)
    return None


def _divergence(node: Any) -> Optional[LossFound]:
    """`kl_div`: target times its own logarithm, which is a constant, less target times output, number by number."""
    sides = below(node)
    inner = sides[0] if len(sides) == 1 else None
    if inner is None or op_of(inner) != "mul" or len(below(inner)) != 1:
        return None
    values = [value for value in (saved(inner, "self"), saved(inner, "other")) if value is not None]
    target = values[0] if len(values) == 1 else None  # the output is kept only where the target has a gradient, too
    if target is None or target.dim() < 2 or not target.is_floating_point() or not _is_distribution(target):
        return None
    made_by = _made_by(below(inner)[0])
    return LossFound("kl_div", "kl", None, made_by, _result_of(made_by), target)


def _is_distribution(target: Any) -> bool:
    """Rows that sum to one, and are no choice of one class. Not asked of another device: that would wait for it, in each sample."""
    rows = target.detach()
    return rows.is_cpu and bool(
        (rows >= 0).all() and ((rows.sum(-1) - 1).abs() < 1e-3).all() and (rows.amax(-1) < 1).any()
    )


def _difference(node: Any, op: str) -> Optional[LossFound]:
    """`((a - b) ** 2).mean()` and `(a - b).abs().mean()`: the target itself is not saved, their difference is."""
    inner = below(node)[0] if below(node) else None
    if inner is None or op_of(inner) not in ("sub", "rsub"):
        return None
    if op == "pow" and saved(node, "exponent") != 2:
        return None
    sides = below(inner)
    name = "l1_loss" if op == "abs" else "squared difference"
    difference = saved(node, "self")
    # Of outputs and targets, and not of outputs with each other (pairs), or of such a difference and its own targets.
    of_targets = len(sides) == 1 and activation_of(past_shapes(sides[0])) is not None
    shape = [int(size) for size in difference.shape] if difference is not None and of_targets else None
    return LossFound(name, "regression", None, _made_by(sides[0]) if sides else None, None, None, compared=shape)


def over_rows(loss: Any) -> bool:
    """Whether the softmax that goes into the loss divides by a sum over the batch: its axis is the first of several. One below
    a layer is attention, and one that is turned around afterwards has another axis first on purpose."""
    for node in _from_the_top(loss, not_past=LINEAR | TURNED):
        if op_of(node) in ("log_softmax", "softmax"):
            result = saved(node, "result")
            return result is not None and result.dim() > 1 and saved(node, "dim") in (0, 2**64 - result.dim())
    return False


def past_shapes(node: Any) -> Any:
    while node is not None and not is_leaf(node) and op_of(node) in SHAPES:
        inner = below(node)
        node = inner[0] if inner else None
    return node


def _made_by(node: Any) -> Any:
    return past_shapes(node)


def _result_of(node: Any) -> Any:
    """Of an activation, which has saved its result."""
    node = past_shapes(node)
    if node is None or is_leaf(node) or op_of(node) not in ACTIVATIONS:
        return None
    return saved(node, "result")


def activation_of(node: Any) -> Optional[str]:
    """The activation that a value came out of; `linear` where it is a layer's own sum; None where that is not known."""
    if node is None or is_leaf(node):
        return None
    op = op_of(node)
    if op in ACTIVATIONS:
        return ACTIVATIONS[op]
    if op == "add" and parameter_of(node, depth=1) is not None:  # a bias
        return "linear"
    return "linear" if op in LINEAR else None


def parameter_of(node: Any, depth: int = 3) -> Any:
    """The parameter of the layer that a node belongs to; None where there is none near."""
    node = past_shapes(node)
    for _ in range(depth):
        if node is None:
            return None
        if is_leaf(node):
            return node.variable
        inner = below(node)
        leaves = [past_shapes(one) for one in inner]
        weights = [leaf.variable for leaf in leaves if leaf is not None and is_leaf(leaf)]
        weights = [weight for weight in weights if weight.requires_grad]
        if weights:
            return max(weights, key=lambda weight: weight.dim())
        node = past_shapes(inner[0]) if inner else None
    return None
