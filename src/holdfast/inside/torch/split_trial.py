"""May a module's call be cut? A few rows as one piece and as two must give the same, without dropout and statistics."""

from __future__ import annotations

from typing import Any, List, Tuple

from ..out_of_memory import forget, give_back, is_out_of_memory
from ..piece_sizes import bounds
from ..rescue_engine import CannotSplit
from . import among_ranks
from .batch_function import TRIAL
from .gradient_samples import sampled
from .loss_shares import CannotTell, Precision, Shares, precision_of, weighings
from .recompute import Call
from .step_undo import aside, without_chance
from .tensor_nests import form_of, named_leaves, tensors_of

FEW, LEAST = 4, 2  # rows that are tried
OF_A_NUMBER = 5e-3  # as near as one number must be, where its gradient cannot be had


class Trial:
    """Of one module or function, for as long as it trains."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._differentiable: List[bool] = []
        self._shares: List[Any] = []

    def settle(self, call: Call, few: int) -> None:
        """Or CannotSplit. `few` rows are known to fit, or hoped to."""
        few = max(2, min(few, FEW, call.rows))
        ways = [(few, True), (LEAST, True), (few, False), (LEAST, False)]
        for number, (rows, gradients) in enumerate(ways):
            if (rows, gradients) not in ways[:number] and self._has_settled(call, rows, gradients):
                return
        if not call.function.share_by:
            raise CannotSplit("a few rows of it could not be tried")
        self._differentiable, self._shares = [True], [Shares([call.function.share_by])]
        self._settled(call, few, gradients=False)

    def _has_settled(self, call: Call, few: int, gradients: bool) -> bool:
        """False where memory ran out, or what was measured is no number."""
        try:
            with call.traces.unchanged(), without_chance(call.module), among_ranks.refusing_collectives(self._torch):
                self._settled(call, few, gradients)
            return True
        except CannotTell:
            return False
        except (MemoryError, RuntimeError, TypeError, ValueError) as error:
            if not is_out_of_memory(error):
                raise CannotSplit(f"a few rows of it fail: {type(error).__name__}: {error}"[:200]) from None
            failure = error
        forget(failure)
        give_back()
        return False

    def _settled(self, call: Call, few: int, gradients: bool) -> None:
        if not self._differentiable:
            self._compare(call, few)
        call.differentiable = self._differentiable
        call.ways = [
            None if shares is None else self._way(call, shares, few, number, gradients)
            for number, shares in enumerate(self._shares)
        ]
        call.known = next((shares.known for shares in self._shares if shares is not None), [])

    def _compare(self, call: Call, few: int) -> None:
        torch = self._torch
        first, second = bounds(few, 2)
        with torch.enable_grad():
            found = call.run(TRIAL, *first)
        form, ones = form_of(found, torch), tensors_of(found, torch)
        differentiable = [tensor.requires_grad for tensor in ones]
        if not any(differentiable):
            raise CannotSplit("nothing it returns has a gradient")
        if any(tensor.dim() for tensor in ones):
            self._compare_rows(call, form, [tensor.detach() for tensor in ones], second)
        self._shares = [None if tensor.dim() else Shares() for tensor in ones]
        self._differentiable = differentiable

    def _compare_rows(self, call: Call, form: Any, ones: List[Any], second: Tuple[int, int]) -> None:
        torch, within = self._torch, self._precision(call).within
        with call.without_graph():
            whole, part = call.run(TRIAL, 0, second[1]), call.run(TRIAL, *second)
        if form_of(whole, torch) != form or form_of(part, torch) != form:
            raise CannotSplit("what it returns differs from part to part")
        for together, one, other in zip(tensors_of(whole, torch), ones, tensors_of(part, torch)):
            if together.dim() and not _same(torch, together.detach(), one, other.detach(), within):
                raise CannotSplit("what it computes for a row depends on the other rows of the batch")

    def _precision(self, call: Call) -> Precision:
        mixed = call.function.mixed or any(enabled for _, enabled, _ in call.casting)
        return precision_of(self._torch, call.parameters, mixed)

    def _way(self, call: Call, shares: Shares, few: int, number: int, gradients: bool) -> Any:
        torch, rows, said = self._torch, call.rows, call.function.share_by
        tensors = {
            name: leaf
            for name, leaf in named_leaves({"args": call.args, "kwargs": call.kwargs})
            if isinstance(leaf, torch.Tensor) and leaf.dim() and leaf.shape[0] == rows
        }
        batch = weighings(tensors, rows, [said] if said else shares.known)
        if said:
            batch = {said: batch[said]}
        if not shares.is_settled(batch):
            precision = self._precision(call)
            if not gradients:
                precision = Precision(min(precision.within, OF_A_NUMBER), precision.chance)
            with aside(call.parameters):
                shares.settle(
                    batch, rows, few, lambda begin, end: self._measured(call, number, begin, end, gradients), precision
                )
        return shares.way(batch)

    def _measured(self, call: Call, number: int, begin: int, end: int, gradients: bool) -> Any:
        """The gradient of one number it returns, or the number."""
        torch = self._torch
        with torch.enable_grad() if gradients else call.without_graph():
            value = tensors_of(call.run(TRIAL, begin, end, {}), torch)[number]
            if not value.requires_grad or not gradients:
                return value.detach().double().reshape(1).cpu()
            try:
                # Checkpoints that enter it anew know no other way than a backward pass.
                among_ranks.backward(torch, [value], None, call.parameters)
                return sampled(torch, [(parameter, parameter.grad) for parameter in call.parameters])
            finally:
                for parameter in call.parameters:
                    parameter.grad = None


def _same(torch: Any, whole: Any, one: Any, other: Any, within: float) -> bool:
    if one.shape[0] + other.shape[0] != whole.shape[0]:
        return False
    joined = torch.cat([one, other])
    if not whole.is_floating_point() and not whole.is_complex():
        return bool(torch.equal(whole, joined))
    kind = torch.complex128 if whole.is_complex() else torch.float64
    whole, joined = whole.to(kind), joined.to(kind)
    both = torch.isfinite(whole) & torch.isfinite(joined)
    if not bool(torch.equal(torch.isfinite(whole), torch.isfinite(joined))):
        return False
    off, size = (whole - joined)[both].norm(), whole[both].norm()
    return float(off) <= within * max(float(size), 1e-30)
