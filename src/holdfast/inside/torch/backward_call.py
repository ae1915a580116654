"""One call for PyTorch loops: forward and backward of a batch, in micro-batches where it does not fit.

    loss = holdfast.backward(model, lambda x, y: criterion(model(x), y), x, y)

stands for `loss = criterion(model(x), y); loss.backward()`. Zeroing gradients and stepping the optimizer stay where they
are, so one optimizer step is still one batch.
"""

from __future__ import annotations

import sys
import weakref
from typing import Any, Callable, List, Optional

from ..never_raise import guarded
from ..out_of_memory import is_out_of_memory
from ..user_errors import passing
from . import seams
from .batch_function import LossFunction
from .loop_rescue import LoopRescue, RescuedModule
from .loss_shares import ADDED_UP, ROWS
from .module_hooks import rescued_backward

_known: Any = weakref.WeakKeyDictionary()  # by model, and by how its rows are put together: what fits
_rescues: List[LoopRescue] = []  # one at most: it works without `holdfast run`, too


def backward(
    model: Any, loss_of: Callable[..., Any], batch: tuple[Any, ...], reduction: str, scaler: Any, recorder: Any
) -> Any:
    """The batch's loss, detached; its gradients are added to what `.grad` holds, as `loss.backward()` would.

    `loss_of(*batch)` gives a loss that is the mean over the first axis of the batch (or its sum, with
    `reduction="sum"`). `scaler` is a GradScaler, where one is used.
    """
    share_by = ROWS if reduction == "mean" else ADDED_UP
    # Whatever the loss computes in: the script says how it is to be split, and that only has to be plausible.
    function = LossFunction(model, loss_of, mixed=True, share_by=share_by)
    protects = recorder.settings.get("policy", "protect") == "protect"
    known = _outermost(function, recorder) if protects else None
    with passing:
        if known is None:
            loss = loss_of(*batch)
            (loss if scaler is None else scaler.scale(loss)).backward()
            return loss.detach()
        return _rescued(known, function, batch, scaler)


def _rescued(known: RescuedModule, function: LossFunction, batch: tuple[Any, ...], scaler: Any) -> Any:
    (rescue,) = _rescues
    loss = rescue.run(known, function, batch, {})
    try:
        rescued_backward(rescue, loss if scaler is None else scaler.scale(loss))
    except (MemoryError, RuntimeError) as error:
        if is_out_of_memory(error):
            known.put_back()  # forward and backward are one call here, and leave no trace together
        raise
    return loss.detach()


@guarded
def _outermost(function: LossFunction, recorder: Any) -> Optional[RescuedModule]:
    if not _rescues:
        torch: Any = sys.modules["torch"]
        _rescues.append(LoopRescue(recorder, torch, torch.nn.Module.__call__))
    known: dict[str, RescuedModule] = _known.setdefault(function.model, {})
    if function.share_by not in known:
        known[function.share_by] = RescuedModule(_rescues[0], function)
    return known[function.share_by]


@guarded
def limit_gpu(torch: Any, budget: Optional[int]) -> None:
    """Only where the user asked for it, and when CUDA starts: starting it here would break programs that fork."""
    if not budget:
        return

    def limit() -> None:
        for device in range(torch.cuda.device_count()):
            total = torch.cuda.get_device_properties(device).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, budget / total), device)

    seams.once_cuda_starts(torch, guarded(limit))
