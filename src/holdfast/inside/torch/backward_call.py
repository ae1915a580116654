"""One call for PyTorch loops: forward and backward of a batch, in micro-batches where it does not fit.

    loss = holdfast.backward(model, lambda x, y: criterion(model(x), y), x, y)

stands for `loss = criterion(model(x), y); loss.backward()`. Zeroing gradients and stepping the optimizer stay where they
are, so one optimizer step is still one batch.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Callable, Optional

from ..never_raise import guarded, unseen
from .batch_split import Split, Step
from .loss_shares import ADDED_UP, ROWS
from .outermost_call import left_alone

_known: Any = weakref.WeakKeyDictionary()  # by model, and by how its rows are put together: what fits


def backward(
    model: Any, loss_of: Callable[..., Any], batch: tuple[Any, ...], reduction: str, scaler: Any, recorder: Any
) -> Any:
    """The batch's loss, detached; its gradients are added to what `.grad` holds, as `loss.backward()` would.

    `loss_of(*batch)` gives a loss that is the mean over the first axis of the batch (or its sum, with
    `reduction="sum"`). `scaler` is a GradScaler, where one is used.
    """
    step = _Step(model, loss_of, batch, reduction, scaler)
    try:
        split = (
            _split_of(model, reduction, recorder) if recorder.settings.get("policy", "protect") == "protect" else None
        )
        with left_alone():
            return split.run(step) if split is not None else step.whole()
    except BaseException as error:
        unseen(error)
        raise


@guarded
def _split_of(model: Any, reduction: str, recorder: Any) -> Split:
    known: dict[str, Split] = _known.setdefault(model, {})
    if reduction not in known:
        known[reduction] = Split(recorder, model)
    known[reduction].look_again(model)
    return known[reduction]


class _Step(Step):
    mixed = (
        True  # whatever the loss computes in: the script says how it is to be split, and that only has to be plausible
    )

    def __init__(self, model: Any, loss_of: Callable[..., Any], batch: Any, reduction: str, scaler: Any) -> None:
        self.model, self.batch = model, batch
        self._loss_of, self._scaler = loss_of, scaler
        self.share_by = ROWS if reduction == "mean" else ADDED_UP
        self._total: Any = None

    def whole(self) -> Any:
        try:
            loss = self._loss_of(*self.batch)
            (loss if self._scaler is None else self._scaler.scale(loss)).backward()
        except BaseException as error:
            unseen(error)
            raise
        return loss.detach()

    def piece(self, batch: Any, share: float) -> None:
        loss = self._loss_of(*batch) * share
        (loss if self._scaler is None else self._scaler.scale(loss)).backward()
        self._total = loss.detach() if self._total is None else self._total + loss.detach()

    def ends(self, rows: list[int], shares: list[float], known: list[str]) -> Any:
        return self._total

    def trial(self, batch: Any, gradients: bool) -> Any:
        with sys.modules["torch"].set_grad_enabled(gradients):
            loss = self._loss_of(*batch)
        if gradients:
            loss.backward()
        return loss


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
