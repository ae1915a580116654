"""Gradients that nobody clears: every backward pass since the last update began with what was there before."""

from __future__ import annotations

from typing import Any, Dict, List

from .. import seams
from .finite import is_float

MOST = 64  # parameters that stand for all


class CarriedGradients:
    """Of the steps that are looked at. Passes that add up on purpose (micro-batches, two losses) begin with a cleared gradient once
    after each update; a model that another optimizer trains may keep its own through passes that are not its."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        # By parameter: the smallest norm a pass began with, on its device; None: cleared.
        self._least: Dict[int, Any] = {}

    def before_pass(self, models: List[Any]) -> None:
        torch = self._torch
        parameters = [p for model in models for p in model.parameters() if p.requires_grad][:MOST]
        with_one = [p for p in parameters if is_float(torch, p.grad) and p.grad.layout is torch.strided]
        norms: Dict[int, Any] = {}
        if with_one:
            with torch.no_grad():
                gradients = [p.grad.detach() for p in with_one]
                found = seams.norms_of(torch, gradients) or [torch.linalg.vector_norm(each) for each in gradients]
                norms = {id(p): norm.float() for p, norm in zip(with_one, found)}
                for p in with_one:
                    known = self._least.get(id(p), norms[id(p)])
                    if known is not None:
                        self._least[id(p)] = torch.minimum(known, norms[id(p)])
        for p in parameters:
            if id(p) not in norms:
                self._least[id(p)] = None

    def share(self, optimizer: Any) -> Any:
        """A number on the device; None where this is not known."""
        torch = self._torch
        given = [p for group in optimizer.param_groups for p in group["params"] if is_float(torch, p.grad)]
        seen = [p for p in given if id(p) in self._least and p.grad.layout is torch.strided]
        if not seen:
            return None
        if any(self._least[id(p)] is None for p in seen):
            return seen[0].grad.new_zeros((), dtype=torch.float32)
        with torch.no_grad():
            before = torch.linalg.vector_norm(torch.stack([self._least[id(p)] for p in seen]))
            after = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(p.grad).float() for p in seen]))
            return before / after.clamp_min(1e-30)

    def after_update(self) -> None:
        self._least.clear()
