"""The short cut of the usual step: one loader, one optimizer, nothing due of telemetry, checkpoints, rescue and numerics.

In a loop of 1 ms steps all code of ours is out of the processor's caches each time, so what counts is how many lines of
memory a step touches, and a layer for each aspect around each call touches many: 34 µs a step of four layers, where one
function a call does what all of them would have done. It is decided when a step ends whether the next one is usual, and
again at least every 50 ms; what turns up in between (another shape, a loss that is not finite) ends it at once, and the layers
are called as ever.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from threading import get_ident
from typing import Any, Optional, Tuple

from ..never_raise import guarded
from ..script_state.loop_checkpoint import LoopCheckpoints
from ..telemetry import now
from ..user_errors import show_without_ours
from .fed_batches import FedBatches
from .kept_loops import Clearing, nothing_due
from .loop import Loop
from .loop_rescue import LoopRescue
from .numerics.hooks import Looks
from .outermost_call import here
from .step import Call, Hook, Step, compiling
from .telemetry import Telemetry


class UsualStep:
    def __init__(
        self,
        torch: Any,
        telemetry: Telemetry,
        kept: Optional[LoopCheckpoints],
        clearing: Optional[Clearing],
        rescue: Optional[LoopRescue],
        looks: Optional[Looks],
        fed: Optional[FedBatches],
    ) -> None:
        self._torch, self._telemetry = torch, telemetry
        self._kept, self._clearing, self._rescue, self._looks = kept, clearing, rescue, looks
        self._fed = fed
        telemetry.nothing_else_due = self._nothing_due
        if kept is not None:
            framework: Any = kept.framework
            framework.leave_short_cut = guarded(lambda: telemetry.leave(now()))

    def _nothing_due(self, loop: Loop) -> bool:
        kept, looks, rescue = self._kept, self._looks, self._rescue
        self._telemetry.lane.last_step = looks.plain_until - 2 if looks is not None else sys.maxsize
        return (
            (looks is None or looks.is_plain())
            and (rescue is None or not rescue.backward.records)
            and (kept is None or nothing_due(kept, loop.source))
        )

    def over(self, original: Step, layered: Step) -> Step:
        return replace(
            layered,
            next_batch=self._next_batch(original.next_batch, layered.next_batch),
            backward=self._backward(original.backward, layered.backward),
        )

    def _next_batch(self, original: Call, layered: Call) -> Call:
        lane, kept = self._telemetry.lane, self._kept
        came = self._fed.came if self._fed is not None else None

        def __next__(iterator: Any) -> Any:
            try:
                iteration: Any = lane.iteration
                if iteration is None or iteration is not getattr(iterator, "_holdfast", None):
                    return layered(iterator)
                began = now()
                try:
                    batch = original(iterator)
                except StopIteration:
                    self._data_is_over(iteration, began)
                    raise
                lane.wait_s += now() - began
                lane.fed = True
                if came is not None and iteration.fed is not None and iteration.fed.looks:
                    instead = came(iteration, batch)
                    batch = batch if instead is None else instead
                if kept is not None:
                    kept.begun = 0
                    iteration.position.count += 1
                return batch
            except BaseException as error:
                show_without_ours(error)
                raise

        return __next__

    @guarded
    def _data_is_over(self, iteration: Any, began: float) -> None:
        if self._kept is not None:
            self._kept.nothing_came(iteration.position)
        if self._fed is not None:
            self._fed.pass_is_over(iteration)
        self._telemetry.ended(iteration, began)

    def _backward(self, original: Call, layered: Call) -> Call:
        lane, looks, rescue, leave = self._telemetry.lane, self._looks, self._rescue, guarded(self._telemetry.leave)
        is_compiling, Tensor, recorder = compiling(self._torch), self._torch.Tensor, self._telemetry.recorder
        losses = looks.notices.losses if looks is not None else None
        passes = rescue.backward if rescue is not None else None

        def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            if is_compiling():
                return original(tensor, *args, **kwargs)
            try:
                if lane.optimizer and lane.thread == get_ident() and (passes is None or not passes.records):
                    if losses is None:
                        return original(tensor, *args, **kwargs)
                    if type(tensor) is Tensor and tensor.is_cpu and tensor.numel() == 1:
                        value = tensor.item()
                        if value - value == 0.0:
                            losses.append((recorder.steps + 1, value))
                            return original(tensor, *args, **kwargs)
                        leave(now())
                return layered(tensor, *args, **kwargs)
            except BaseException as error:
                show_without_ours(error)
                raise

        return backward

    def updates(self, before: Hook, after: Hook) -> Tuple[Hook, Hook]:
        lane, looks, go_on = self._telemetry.lane, self._looks, guarded(self._telemetry.go_on)
        kept, clearing = self._kept, self._clearing
        look = guarded(looks.gradient_is_fine) if looks is not None else None
        leave, recorder, is_compiling = guarded(self._telemetry.leave), self._telemetry.recorder, compiling(self._torch)

        def before_update(optimizer: Any, args: Any, kwargs: Any) -> None:
            if lane.optimizer != id(optimizer) or is_compiling():
                before(optimizer, args, kwargs)
                return
            if not lane.fed and clearing is not None and not clearing.is_followed:
                leave(now())  # updates without a batch in between are counted there
                before(optimizer, args, kwargs)
                return
            if looks is not None and look is not None:
                looks.updating = optimizer
                looks.left -= 1
                if looks.left <= 0 and not look(optimizer):
                    leave(now())
                    before(optimizer, args, kwargs)
                    return
            if kept is not None:
                kept.update_count += 1

        def after_update(optimizer: Any, args: Any, kwargs: Any) -> None:
            if lane.optimizer != id(optimizer) or is_compiling():
                after(optimizer, args, kwargs)
                return
            lane.updates += 1
            lane.fed = False
            if looks is not None:
                looks.updating, looks.has_updated = None, True
                here.calls.clear()
            if not recorder.by_hand:
                recorder.steps += 1
            moment = now()
            if moment >= lane.over_at or recorder.steps >= lane.last_step:
                go_on(lane, moment)

        return before_update, after_update
