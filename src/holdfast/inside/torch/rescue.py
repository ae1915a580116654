"""One call for PyTorch loops: forward and backward of a batch, in micro-batches where it does not fit.

    loss = holdfast.backward(model, lambda x, y: criterion(model(x), y), x, y)

stands for `loss = criterion(model(x), y); loss.backward()`. Zeroing gradients and stepping the optimizer stay where they
are, so one optimizer step is still one batch.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Callable, Optional

from ..guard import guarded
from ..memory import forget, give_back, is_out_of_memory, ran_out_on, wanted
from ..pieces import Pieces, bounds
from .chance import without_draws
from .outermost import left_alone
from .slicing import CannotSlice, cut, rows_of, tail_of

DEVIATES = 0.02
PROBE_ROWS = 8

_known: Any = weakref.WeakKeyDictionary()  # by model: what fits


def backward(
    model: Any,
    loss_of: Callable[..., Any],
    *batch: Any,
    reduction: str = "mean",
    scaler: Any = None,
    tell: Optional[Callable[..., None]] = None,
    begin_with: int = 1,
    act: bool = True,
) -> Any:
    """The batch's loss, detached; its gradients are added to what `.grad` holds, as `loss.backward()` would.

    `loss_of(*batch)` gives a loss that is the mean over the first axis of the batch (or its sum, with
    `reduction="sum"`). `scaler` is a GradScaler, where one is used.
    """
    if not act:
        return _run(loss_of, batch, 1.0, scaler)
    known = _known.get(model)
    if known is None:
        normalises = any("BatchNorm" in type(module).__name__ for module in model.modules())
        # A run that was killed on the CPU begins in pieces, and would be killed again by larger ones.
        tries = begin_with == 1 or bool(sys.modules["torch"].cuda.is_available())
        known = _known[model] = Pieces(begin_with, least=2 if normalises else 1, tries=tries)
        (tell or _nobody)("rescue.ready", k=begin_with)
    step = _Step(model, loss_of, batch, reduction, scaler, tell or _nobody)
    with left_alone():
        return step.run(known)


def _nobody(_kind: str, **_data: object) -> None:
    return None


def _run(loss_of: Callable[..., Any], batch: Any, share: float, scaler: Any) -> Any:
    loss = loss_of(*batch)
    part = loss if share == 1.0 else loss * share
    (part if scaler is None else scaler.scale(part)).backward()
    return part.detach()


class _Step:
    """One batch. Everything a failed attempt changed is put back: gradients, buffers, random state."""

    def __init__(
        self,
        model: Any,
        loss_of: Callable[..., Any],
        batch: Any,
        reduction: str,
        scaler: Any,
        tell: Callable[..., None],
    ) -> None:
        self._torch: Any = sys.modules["torch"]
        self._model, self._loss_of, self._batch = model, loss_of, batch
        self._reduction, self._scaler, self._tell = reduction, scaler, tell
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._gradients: list[Any] = []
        self._buffers: list[tuple[Any, Any]] = []
        self._random: list[Any] = []

    def run(self, known: Pieces) -> Any:
        failure: Optional[BaseException] = None
        self._keep()
        while True:
            rows, tail, k = self._size(known)
            try:
                if k > 1:
                    self._verify(known, min(PROBE_ROWS, rows // k), failure)
                loss = self._attempt(rows, k)
            except BaseException as error:  # whatever it is: gradients that were set aside go back, and it goes on
                if known.refused or not is_out_of_memory(error):
                    self._return_gradients()
                    raise
                self._put_back()
                if not self._smaller(known, rows, tail, k, error):
                    self._return_gradients()
                    raise
                forget(error)
                failure = error
            else:
                self._return_gradients()
                now = known.fitted(rows, tail, k) if k > 1 else k
                if now != k:
                    self._tell("rescue.k", k=now, where="train")
                return loss
            give_back()

    def _size(self, known: Pieces) -> tuple[int, Any, int]:
        try:
            rows, tail = rows_of(self._batch, self._torch), tail_of(self._batch, self._torch)
        except CannotSlice:
            return 1, None, 1
        return rows, tail, 1 if known.refused else known.count(rows, tail)

    def _attempt(self, rows: int, k: int) -> Any:
        if k == 1:
            return _run(self._loss_of, self._batch, 1.0, self._scaler)
        total = None
        for begin, end in bounds(rows, k):
            share = (end - begin) / rows if self._reduction == "mean" else 1.0
            part = _run(self._loss_of, cut(self._batch, begin, end, self._torch), share, self._scaler)
            total = part if total is None else total + part
        return total

    def _smaller(self, known: Pieces, rows: int, tail: Any, k: int, error: BaseException) -> bool:
        self._tell("rescue.caught", where="train", k=k, of=ran_out_on(error), wanted=wanted(error))
        if tail is None:
            self._tell("rescue.refused", reason="the batch's tensors do not share a first axis", wanted=wanted(error))
            return False
        grown = known.did_not_fit(rows, tail, k)
        if grown is None:
            self._tell("rescue.refused", reason="one row at a time does not fit", wanted=wanted(error))
            return False
        self._tell("rescue.k", k=grown, where="train")
        return True

    # -- no trace of a failed attempt

    def _keep(self) -> None:
        torch = self._torch
        self._gradients = [p.grad for p in self._parameters]
        if any(g is not None for g in self._gradients):  # the user accumulates: added back at the end
            for parameter in self._parameters:
                parameter.grad = None
        changing = [b for b in self._model.buffers() if b is not None] if self._model.training else []
        self._buffers = [(buffer, buffer.detach().clone()) for buffer in changing]
        self._random = [torch.get_rng_state()]
        if torch.cuda.is_initialized():
            self._random.append(torch.cuda.get_rng_state())

    def _put_back(self) -> None:
        torch = self._torch
        for parameter in self._parameters:
            parameter.grad = None
        with torch.no_grad():
            for buffer, copy in self._buffers:
                buffer.copy_(copy)
        torch.set_rng_state(self._random[0])
        if len(self._random) > 1:
            torch.cuda.set_rng_state(self._random[1])

    def _return_gradients(self) -> None:
        for parameter, before in zip(self._parameters, self._gradients):
            if before is None:
                continue
            parameter.grad = before if parameter.grad is None else before.add_(parameter.grad)

    # -- whether it may be split

    def _verify(self, known: Pieces, few: int, failure: Optional[BaseException]) -> None:
        """On a few rows: is the whole the sum of its parts? Once a model; at one row the user's word must do."""
        if known.verified:
            return
        if few >= 2:
            was_training = self._model.training
            self._model.eval()  # no dropout, no batch statistics: those differ by themselves
            try:
                with without_draws(self._torch):
                    whole, halves = self._gradient([(0, few)], few), self._gradient(bounds(few, 2), few)
            finally:
                self._model.train(was_training)
                self._put_back()
            off = sum(float(((a - b) ** 2).sum()) for a, b in zip(whole, halves)) ** 0.5
            size = sum(float((a**2).sum()) for a in whole) ** 0.5
            if off > DEVIATES * max(size, 1e-30):
                reason = "the gradient of a batch is not that of its parts together: the loss is over the whole batch"
                self._tell("rescue.refused", reason=reason)
                known.refused = True
                raise failure if failure is not None else RuntimeError(reason)
        known.verified = True

    def _gradient(self, pieces: list[tuple[int, int]], rows: int) -> list[Any]:
        for parameter in self._parameters:
            parameter.grad = None
        for begin, end in pieces:
            share = (end - begin) / rows if self._reduction == "mean" else 1.0
            _run(self._loss_of, cut(self._batch, begin, end, self._torch), share, None)
        return [p.grad.detach().float() for p in self._parameters if p.grad is not None]


@guarded
def limit_gpu(torch: Any, budget: Optional[int]) -> None:
    """Only where the user asked for it, and when CUDA starts: starting it here would break programs that fork."""
    if not budget:
        return

    def limit() -> None:
        for device in range(torch.cuda.device_count()):
            total = torch.cuda.get_device_properties(device).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, budget / total), device)

    torch.cuda._lazy_call(guarded(limit))
