"""A run in checking mode: every operation's result is looked at, and what is not finite is followed to where it began.

Values that are infinite on purpose (masks of attention) begin nothing: what counts is the way from the result back to the
first operation that made it out of finite numbers, or a NaN out of infinities.
"""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ...numerics.events import Place
from ...numerics.user_lines import line_of
from ..tensor_nests import tensors_of
from .finite import all_finite, is_float
from .op_values import UNNAMED, clause, plain_name

FILLS = frozenset(
    {"masked_fill", "full", "full_like", "fill", "setitem", "where", "new_full", "tensor", "zeros", "triu", "tril"}
)
FOLLOWED = 20_000  # operations with a non-finite result; a run with more is followed no further


@dataclass
class Made:
    """Something non-finite, and what made it."""

    op: str
    nan: bool
    parents: List[Made] = field(default_factory=list)
    from_outside: str = ""  # an input's name: nothing made it here
    place: Place = field(default_factory=Place)
    values: Optional[str] = None
    value: Any = None  # what came from outside


@dataclass
class OfNode:
    """Where a node of autograd's graph was made, for what goes wrong on the way back."""

    op: str
    place: Place
    operands: List[Any]


class CheckedOps:
    def __init__(self, torch: Any, model: Any, inputs: List[Tuple[str, Any]], backward: bool = False) -> None:
        self._torch = torch
        self._names = {id(module): name for name, module in model.named_modules()} if model is not None else {}
        self._layers: List[Any] = []
        self._made: Dict[int, Made] = {}
        self._alive: List[Any] = []  # so that no other tensor gets the id of one that is known
        self._backward = backward
        self.nodes: Dict[Any, OfNode] = {}
        self.entered: Set[int] = set()  # what began outside and was given to a module with parameters
        self.tell_inputs(inputs)

    def tell_inputs(self, named: List[Tuple[str, Any]]) -> None:
        for name, value in named:
            if is_float(self._torch, value) and not all_finite(self._torch, value):
                self._keep(value, Made("input", self._has_nan(value), from_outside=name, value=value))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        torch, watch = self._torch, self._after

        class Mode(torch.overrides.TorchFunctionMode):  # type: ignore[misc,name-defined]
            def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
                kwargs = kwargs or {}
                found = function(*args, **kwargs)
                watch(function, args, kwargs, found)
                return found

        module: Any = sys.modules["torch.nn.modules.module"]
        hooks = [
            module.register_module_forward_pre_hook(self._enter),
            module.register_module_forward_hook(self._leave),
        ]
        try:
            with Mode():
                yield
        finally:
            for hook in hooks:
                hook.remove()

    def _enter(self, module: Any, args: Any) -> None:
        if not self._layers and next(iter(module.parameters()), None) is not None:
            known = [self._made.get(id(tensor)) for tensor in tensors_of(args, self._torch)]
            self.entered |= {id(_first(made)) for made in known if made is not None}
        self._layers.append(module)

    def _leave(self, module: Any, _args: Any, _found: Any) -> None:
        while self._layers and self._layers.pop() is not module:
            pass

    def _has_nan(self, value: Any) -> bool:
        with self._torch.no_grad():
            return bool(self._torch.isnan(value.detach()).any())

    def _keep(self, value: Any, made: Made) -> None:
        self._made[id(value)] = made
        self._alive.append(value)

    def _after(self, function: Any, args: Any, kwargs: Any, found: Any) -> None:
        torch = self._torch
        name = getattr(function, "__name__", str(function))
        if name in UNNAMED:
            return
        given = [part for part in (*args, *kwargs.values()) if part is not None]
        results = [args[0]] if found is None and name == "__setitem__" else tensors_of(found, torch)
        place: Optional[Place] = None
        for result in results:
            if self._backward and result.grad_fn is not None and result.grad_fn not in self.nodes:
                place = place or self._place(name, result)
                self.nodes[result.grad_fn] = OfNode(plain_name(name), place, given)
            if not is_float(torch, result) or len(self._alive) > FOLLOWED:
                continue
            if all_finite(torch, result):
                self._made.pop(id(result), None)  # in place: it was mended
                continue
            place = place or self._place(name, result)
            self._keep(result, self._found(name, given, result, place))

    def _found(self, name: str, given: List[Any], result: Any, place: Place) -> Made:
        torch = self._torch
        parents = []
        for operand in tensors_of(given, torch):
            known = self._made.get(id(operand))
            if known is None and is_float(torch, operand) and operand is not result and not all_finite(torch, operand):
                known = Made("unknown", self._has_nan(operand), from_outside=self._outside(operand), value=operand)
                self._keep(operand, known)
            if known is not None:
                parents.append(known)
        made = Made(plain_name(name), self._has_nan(result), parents, place=place)
        begins = not parents or (made.nan and not any(parent.nan for parent in parents))
        if begins:
            made.values = clause(torch, name, given, result)
        return made

    def _outside(self, operand: Any) -> str:
        return "a parameter" if operand.requires_grad and operand.is_leaf else "a value of the script's"

    def _place(self, name: str, result: Any) -> Place:
        layer = self._layers[-1] if self._layers else None
        known = self._names.get(id(layer)) or (type(layer).__name__ if layer is not None else None)
        line = line_of(sys._getframe(3))
        return {
            "layer": known,
            "op": plain_name(name),
            "line": line[0] if line else None,
            "code": line[1] if line else None,
            "dtype": str(result.dtype).replace("torch.", ""),
        }

    def began(self, results: List[Any]) -> Optional[Made]:
        """Where the non-finite numbers in these came from; None where they are finite."""
        for result in results:
            made = self._made.get(id(result))
            if made is not None:
                return _first(made)
        return None


def _first(made: Made) -> Made:
    """The way back: to what has NaN where that does, and past infinities that were put there on purpose."""
    seen = set()
    while made.parents and id(made) not in seen:
        seen.add(id(made))
        if made.nan:
            with_nan = [parent for parent in made.parents if parent.nan]
            if with_nan:
                made = with_nan[0]
                continue
            first = _first(made.parents[0])
            if first.op in FILLS or (first.from_outside and not first.nan):
                return made  # infinities on purpose, a NaN out of them
            return first
        made = made.parents[0]
    return made
