"""Parameters that the loss depends on and that nobody trains: in no optimizer, and the same after many steps.

A teacher, a network that only measures, or the target of Q-learning is meant to stay as it is. So only what feeds, in the end, a
parameter that is trained counts; or anything, where nothing in the graph is trained at all.
"""

from __future__ import annotations

import weakref
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ..autograd_graph import is_leaf, number_of, walked
from .finite import is_float
from .graph_values import NODES
from .loss_graph import below, past_shapes

STEPS = 150  # in which another optimizer (a generator's after a critic's), a later phase, or the script itself may take its turn
LISTED_STEPS = 20  # of what stands in a plain list
NAMES = 8
DEPTH, LENGTH = 3, 256  # of lists and dicts that are looked into
SOME = 256  # entries of a parameter that stand for all of it
SUSPECTS = 64
MANY, NEAR = 64, 0.9  # entries, and how near to their bound the largest of them is

Named = Tuple[str, Any]


class LeftOut:
    """Of the first backward pass of a model and a loss."""

    def __init__(self, torch: Any, loss: Any, models: List[Any], step: int) -> None:
        self._step = step
        known = {id(p): name for model in models for name, p in model.named_parameters()}
        models_of = {id(p): number for number, model in enumerate(models) for p in model.parameters()}
        nodes = [node for node, _ in zip(walked([loss.grad_fn], []), range(NODES))]
        leaves = [node.variable for node in nodes if is_leaf(node)]
        leaves = [p for p in leaves if isinstance(p, torch.nn.Parameter) and is_float(torch, p)]
        hidden: Dict[int, str] = {}
        if any(id(p) not in known for p in leaves):
            hidden = {id(p): name for model in models for name, p in _unregistered(torch, model)}
        named = [(known.get(id(p)) or hidden.get(id(p)), id(p) not in known, p) for p in leaves]
        self._suspects = [
            _Suspect(name, is_hidden, p, models_of.get(id(p))) for name, is_hidden, p in named if name is not None
        ]
        self._bits = {id(p): 1 << number for number, p in enumerate(leaves)}
        self._feeding = _feeding(nodes, self._bits)

    def still(self, step: int, given: Set[int]) -> Tuple[List[str], List[str]]:
        """After an update. `given`: parameters of the optimizers that were seen, by id. Names of those that are as they were: of
        the model's own, and of those that it does not know as its parameters."""
        trained = {one.layer for one in self._suspects if not one.is_left(given)}  # a bias may cancel out and stay
        self._suspects = [one for one in self._suspects if one.layer not in trained][:SUSPECTS]
        masks = [mask for each, mask in self._feeding.items() if each in given]
        if masks:
            self._suspects = [s for s in self._suspects if any(mask & self._bits[s.key] for mask in masks)]
        lasted = step - self._step
        own, hidden = (
            [one.name for one in self._suspects if one.is_hidden is which and lasted >= steps][:NAMES]
            for which, steps in ((False, STEPS), (True, LISTED_STEPS))
        )
        return own, hidden

    def never_trained(self) -> bool:
        """Of the model's own: layers that are left out have what PyTorch gives them to begin with."""
        known = [one.is_as_begun() for one in self._suspects if not one.is_hidden]
        return True in known and False not in known


class _Suspect:
    def __init__(self, name: str, is_hidden: bool, parameter: Any, model: Optional[int]) -> None:
        self.name, self.is_hidden = name, is_hidden
        self.layer = (model, name.rsplit(".", 1)[0])  # an encoder and a decoder may both have a layer 0
        self.key = id(parameter)
        self._parameter = weakref.ref(parameter)
        self._begun: Optional[bool] = None
        self._mark: Any = None  # taken at the first look: most are an optimizer's, and gone by then

    def is_as_begun(self) -> Optional[bool]:
        """Of the weights of a linear or convolutional layer, on the CPU: drawn evenly up to a bound, which the largest of many are
        near to and which training leaves at once. None of others."""
        parameter = self._parameter()
        if self._begun is None and parameter is not None and parameter.dim() >= 2 and parameter.device.type == "cpu":
            value = parameter.detach()
            largest, bound = float(value.abs().max()), (value.numel() / value.shape[0]) ** -0.5
            self._begun = value.numel() >= MANY and NEAR * bound <= largest <= bound * (1 + 1e-5)
        return self._begun

    def is_left(self, given: Set[int]) -> bool:
        parameter = self._parameter()
        if parameter is None or id(parameter) in given:
            return False
        mark = (parameter._version, _some(parameter))
        if self._mark is None:
            self._mark = mark
        return bool(mark == self._mark)


def _some(parameter: Any) -> List[float]:
    """Where it is written to by `.data`, its version stays. On a device it is not read: that would wait."""
    return [] if parameter.device.type != "cpu" else parameter.detach().reshape(-1)[:SOME].tolist()


def _feeding(nodes: List[Any], bits: Dict[int, int]) -> Dict[int, int]:
    """By each parameter (by id) that an operation takes: the parameters that its operands came from, as a mask. Nodes are numbered
    in the order in which they were made."""
    masks: Dict[Any, int] = {}
    found: Dict[int, int] = {}
    for node in sorted((one for one in nodes if not is_leaf(one)), key=number_of):
        mask, operands = 0, below(node)
        for one in operands:
            mask |= bits.get(id(one.variable), 0) if is_leaf(one) else masks.get(one, 0)
        masks[node] = mask
        for end in map(past_shapes, operands):
            if end is not None and is_leaf(end) and id(end.variable) in bits:
                found[id(end.variable)] = found.get(id(end.variable), 0) | mask
    return found


def _unregistered(torch: Any, model: Any) -> Iterator[Named]:
    """Parameters in plain lists and dicts of its modules. A module that was set to `eval` is not meant to be trained."""
    for prefix, module in model.named_modules():
        for name, value in vars(module).items():
            if not name.startswith("_") and isinstance(value, (list, tuple, dict)):
                yield from _parameters_in(torch, f"{prefix}.{name}" if prefix else name, value, DEPTH)


def _parameters_in(torch: Any, name: str, value: Any, depth: int) -> Iterator[Named]:
    if isinstance(value, torch.nn.Parameter):
        yield name, value
    elif isinstance(value, torch.nn.Module):
        for inner, parameter in value.named_parameters() if value.training else ():
            yield f"{name}.{inner}", parameter
    elif isinstance(value, (list, tuple, dict)) and depth and len(value) <= LENGTH:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, one in items:
            yield from _parameters_in(torch, f"{name}[{key!r}]", one, depth - 1)
