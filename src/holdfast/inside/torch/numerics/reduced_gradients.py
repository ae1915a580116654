"""Gradients that all ranks have in common: what is decided from them alone is decided alike on every rank, and nothing is sent for it.

DistributedDataParallel has averaged them when an optimizer updates, so NaN of one rank's batch is in those of all. The same
few of them are looked at in each update on each rank: a look by the clock would be another one on each.
"""

from __future__ import annotations

import weakref
from typing import Any, Callable, List, Set

from .. import among_ranks, distributed_seams
from .finite import is_float

SMALL = 4096  # entries of a gradient that is looked at in every step
AMONG = 6  # first and last parameters one of which is chosen for that


class ReducedGradients:
    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._of: Callable[[], Any] = lambda: (
            None
        )  # not by its id, which may be another one's later on one rank and not on the other
        self._wrappers: Any = weakref.WeakKeyDictionary()
        self._looked_at: List[Callable[[], Any]] = []

    def are_fine(self, optimizer: Any) -> bool:
        """As far as two of them tell. On a device nothing is read."""
        if self._of() is not optimizer:
            self._choose(optimizer)
        for found in self._looked_at:
            parameter = found()
            gradient = parameter.grad if parameter is not None else None
            if gradient is not None:
                value = gradient.dot(gradient).item()
                if value - value != 0.0 and not bool(self._torch.isfinite(gradient).all()):
                    return False
        return True

    def _choose(self, optimizer: Any) -> None:
        """A loss that is not finite shows in a bias of the last layer, and what goes wrong on the way back in one of the first."""
        listed = [p for group in optimizer.param_groups for p in group["params"]]
        if any(p.grad is not None for p in listed):  # a closure makes them later
            self._of = weakref.ref(optimizer)
        ends = [[p for p in part if self._is_small(p)] for part in (listed[:AMONG], listed[-AMONG:])]
        chosen = {id(p): p for p in (min(part, key=lambda p: p.numel()) for part in ends if part)}
        self._looked_at = [weakref.ref(p) for p in chosen.values()]

    def _is_small(self, parameter: Any) -> bool:
        torch, gradient = self._torch, parameter.grad
        kinds = (torch.float32, torch.float64)
        return (
            is_float(torch, gradient)
            and gradient.is_cpu
            and gradient.dim() == 1
            and gradient.dtype in kinds
            and gradient.numel() <= SMALL
        )

    def are_everyones(self, optimizer: Any) -> bool:
        """All that it trains was averaged over all ranks, in the backward pass before this update. Asked once something is bad."""
        trained = {id(p) for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
        wrappers = self._wrappers_of(optimizer, trained)
        averaged = {id(p) for wrapper in wrappers for p in wrapper.parameters() if p.requires_grad}
        return (
            bool(wrappers)
            and averaged == trained
            and all(distributed_seams.has_averaged(self._torch, wrapper) for wrapper in wrappers)
        )

    def _wrappers_of(self, optimizer: Any, trained: Set[int]) -> List[Any]:
        """Looked for once for each optimizer, so that it is the same on each rank."""
        if optimizer not in self._wrappers:
            found = [
                one for one in among_ranks.wrappers(self._torch) if any(id(p) in trained for p in one.parameters())
            ]
            self._wrappers[optimizer] = [weakref.ref(one) for one in found]
        return [one for one in (found() for found in self._wrappers[optimizer]) if one is not None]
