"""May a module's call be cut? A few rows as one piece and as two must give the same, without dropout and statistics."""

from __future__ import annotations

from typing import Any, List

from ..out_of_memory import forget, give_back, is_out_of_memory
from ..piece_sizes import bounds
from ..rescue_engine import CannotSplit
from .loss_shares import CannotTell, Precision, Shares, precision_of, weighings
from .piece_state import random_state, set_random_state
from .recompute import Call
from .step_undo import aside, put_back, without_chance
from .tensor_nests import form_of, named_leaves, tensors_of

FEW, LEAST = 4, 2  # rows that are tried
SAMPLE = 4096  # numbers of each gradient that are compared


class Trial:
    """Of one module, for as long as it trains."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._form: Any = None
        self._differentiable: List[bool] = []
        self._shares: List[Any] = []

    def settle(self, call: Call, few: int) -> None:
        """Or CannotSplit. `few` rows are known to fit, or hoped to."""
        torch = self._torch
        few = max(2, min(few, FEW, call.rows))
        random = random_state(torch)
        statistics = [buffer.detach().clone() for buffer in call.traces.statistics]
        while True:
            failure = None
            try:
                with without_chance(call.module):
                    self._settled(call, few)
            except CannotTell:
                raise CannotSplit("a few rows of it could not be tried") from None
            except (MemoryError, RuntimeError) as error:
                if not is_out_of_memory(error):
                    raise CannotSplit(f"a few rows of it fail: {type(error).__name__}: {error}"[:200]) from None
                failure = error
            finally:
                set_random_state(torch, random)
                put_back(torch, statistics, call.traces.statistics)
            if failure is None:
                return
            if few == LEAST:
                raise CannotSplit("two rows of it do not fit")
            few = LEAST
            forget(failure)
            give_back()

    def _settled(self, call: Call, few: int) -> None:
        if self._form is None:
            self._compare(call, few)
        call.differentiable = self._differentiable
        call.ways = [
            None if shares is None else self._way(call, shares, few, number)
            for number, shares in enumerate(self._shares)
        ]

    def _compare(self, call: Call, few: int) -> None:
        torch = self._torch
        with torch.no_grad():
            whole = call.run(0, few)
            parts = [call.run(begin, end) for begin, end in bounds(few, 2)]
        form = form_of(whole, torch)
        if any(form_of(part, torch) != form for part in parts):
            raise CannotSplit("what it returns differs from part to part")
        within = self._precision(call).within
        wholes, (ones, others) = tensors_of(whole, torch), (tensors_of(part, torch) for part in parts)
        for together, one, other in zip(wholes, ones, others):
            if together.dim() and not _same(torch, together, one, other, within):
                raise CannotSplit("what it computes for a row depends on the other rows of the batch")
        with torch.enable_grad():
            self._differentiable = [t.requires_grad for t in tensors_of(call.run(*bounds(few, 2)[0]), torch)]
        if not any(self._differentiable):
            raise CannotSplit("nothing it returns has a gradient")
        self._shares = [None if t.dim() else Shares() for t in wholes]
        self._form = form

    def _precision(self, call: Call) -> Precision:
        mixed = any(enabled for _, enabled, _ in call.casting)
        return precision_of(self._torch, call.parameters, mixed)

    def _way(self, call: Call, shares: Shares, few: int, number: int) -> Any:
        torch, rows = self._torch, call.rows
        tensors = {
            name: leaf
            for name, leaf in named_leaves({"args": call.args, "kwargs": call.kwargs})
            if isinstance(leaf, torch.Tensor) and leaf.dim() and leaf.shape[0] == rows
        }
        batch = weighings(tensors, rows, torch, shares.known)
        if not shares.is_settled(batch):
            with aside(call.parameters):
                shares.settle(
                    batch, rows, few, lambda begin, end: self._measured(call, number, begin, end),
                    self._precision(call), lambda _: None,
                )  # fmt: skip
        return shares.way(batch)

    def _measured(self, call: Call, number: int, begin: int, end: int) -> Any:
        """The gradient of one number it returns, and the number."""
        torch = self._torch
        with torch.enable_grad():
            value = tensors_of(call.run(begin, end), torch)[number]
            if not value.requires_grad:
                return value.detach().double().reshape(1).cpu()
            gradients = torch.autograd.grad(value, call.parameters, allow_unused=True)
        taken = []
        for parameter, gradient in zip(call.parameters, gradients):
            stride = max(1, parameter.numel() // SAMPLE)
            if gradient is None:
                taken.append(torch.zeros(-(-parameter.numel() // stride), dtype=torch.float64))
                continue
            dense = gradient.to_dense() if gradient.is_sparse else gradient
            taken.append(dense.reshape(-1)[::stride].double().cpu())
        return torch.cat(taken)


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
