"""The user's calls of a PyTorch step, with what is told beside them: arguments, result and exceptions pass as they are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..never_raise import guarded
from ..script_state.data_position import ATTRIBUTE
from ..telemetry import now
from .step import Aspect, Call, compiling
from .telemetry import Telemetry


def telling(tells: Telemetry) -> Aspect:
    return lambda step: replace(
        step,
        iterate=_iterate(tells, step.iterate),
        next_batch=_next_batch(tells, step.next_batch),
        scale=_scale(tells, step.scale),
        backward=_backward(tells, step.backward),
        save=_save(tells, step.save),
        before_update=(*step.before_update, tells.before),
        after_update=(tells.after, *step.after_update),
    )


def _iterate(tells: Telemetry, inner: Call) -> Call:
    pause, begun = guarded(tells.pause), guarded(tells.begun)

    def __iter__(loader: Any) -> Any:
        began = now()
        pause(None, began)
        iterator = inner(loader)
        begun(loader, iterator, began)
        return iterator

    return __iter__


def _next_batch(tells: Telemetry, inner: Call) -> Call:
    look, arrived, ended = guarded(tells.look_at_loader), guarded(tells.arrived), guarded(tells.ended)
    lane, leave = tells.lane, guarded(tells.leave)

    def __next__(iterator: Any) -> Any:
        iteration: Any = getattr(iterator, "_holdfast", None)
        if iteration is None:
            return inner(iterator)
        began = now()
        if lane.optimizer:
            leave(began)
        if not iteration.plain:
            iteration.position = getattr(iterator, ATTRIBUTE, None)
            look(iteration)
        try:
            batch = inner(iterator)
        except StopIteration:
            ended(iteration, began)
            raise
        arrived(iteration, batch, began)
        return batch

    return __next__


def _scale(tells: Telemetry, inner: Call) -> Call:
    noted = guarded(tells.scaled)

    def scale(scaler: Any, outputs: Any) -> Any:
        result = inner(scaler, outputs)
        noted(outputs, result)
        return result

    return scale


def _backward(tells: Telemetry, inner: Call) -> Call:
    noted, is_compiling, loops = guarded(tells.backward), compiling(tells.torch), tells.loops

    def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return inner(tensor, *args, **kwargs)
        here = loops.here
        here.quiet = 0
        if tells.loss_due or not here.mark:
            noted(tensor)
        return inner(tensor, *args, **kwargs)

    return backward


def _save(tells: Telemetry, inner: Call) -> Call:
    saving, saved = guarded(tells.saving), guarded(tells.saved)

    def save(*args: Any, **kwargs: Any) -> Any:
        began = saving()
        try:
            return inner(*args, **kwargs)
        finally:
            saved(began)

    return save
