"""Loops that update their weights themselves, `p.data.add_(p.grad, alpha=-lr)`, or by an optimizer that is none of torch.optim.

No call of PyTorch's tells of such an update. Where weights have changed over some backward passes and no optimizer was seen,
the end of a backward pass is taken for the step: the update follows it, before anything else that is looked at.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any, Dict, List, Optional

from ..never_raise import guarded
from . import kept_loops
from .autograd_graph import is_leaf, walked
from .outermost_call import here
from .step import Aspect, Call, Step, compiling
from .telemetry import Telemetry

# Backward passes after which the weights are compared; an accumulation over so many is looked at again later.
PASSES = 20
COMPARED = 64  # entries of a weight
NODES = 200  # of a graph, looked through for one


class UpdatesByHand:
    def __init__(self, torch: Any, telemetry: Telemetry) -> None:
        self._torch, self._telemetry = torch, telemetry
        self.is_over = False  # an optimizer was seen: nothing is looked at any more
        self.updates: Optional[_Stand] = None  # once it is certain
        self._passes = 0
        self._weight: Any = None
        self._before: Any = None

    def aspect(self, step: Step) -> Step:
        return replace(
            step, backward=self._backward(step.backward), before_update=(self._optimizer_seen, *step.before_update)
        )

    def _optimizer_seen(self, _optimizer: Any) -> None:
        self.is_over, self._weight, self._before = True, None, None

    def _backward(self, inner: Call) -> Call:
        noted, is_compiling = guarded(self._pass_is_over), compiling(self._torch)

        def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            result = inner(tensor, *args, **kwargs)
            if not self.is_over and not is_compiling() and not here.again:
                noted(tensor)
            return result

        return backward

    def _pass_is_over(self, loss: Any) -> None:
        if self.updates is not None:
            self._update(self.updates)
            return
        self._passes += 1
        if self._passes == 1 or self._weight is None:
            self._weight = _some_weight() if here.calls else _some_leaf(loss)
            self._before = _entries(self._weight)
        elif self._passes % PASSES == 0 and not self._torch.equal(_entries(self._weight), self._before):
            self.updates = _Stand(self._weight)

    def _update(self, stand: _Stand) -> None:
        clearing = kept_loops.clearing_of_process()
        if clearing is not None:
            clearing.updates(stand)
        self._telemetry.before(stand)
        self._telemetry.after(stand)
        here.calls.clear()


class _Stand:
    """Where an optimizer is asked for."""

    def __init__(self, weight: Any) -> None:
        self.param_groups: List[Dict[str, Any]] = [{"params": [weight]}]
        self.state: Dict[Any, Any] = {}


def following(torch: Any, telemetry: Telemetry) -> Aspect:
    return UpdatesByHand(torch, telemetry).aspect


def _some_weight() -> Any:
    """The last one that has a gradient, on the CPU: elsewhere reading it would wait for the device."""
    found = [p for module, _, _ in here.calls if hasattr(module, "parameters") for p in module.parameters()]
    return next((p for p in reversed(found) if p.grad is not None and p.is_cpu), None)


def _some_leaf(loss: Any) -> Any:
    """Of a loss that was computed without a module."""
    nodes = itertools.islice(walked([loss.grad_fn], ()), NODES)
    leaves = (node.variable for node in nodes if is_leaf(node))
    return next((one for one in leaves if one.grad is not None and one.is_cpu), None)


def _entries(weight: Any) -> Any:
    return weight.detach().reshape(-1)[:COMPARED].clone() if weight is not None else None
