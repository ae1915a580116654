"""Where the numbers of a PyTorch step are looked at: an aspect of the step, and the outermost calls of modules."""

from __future__ import annotations

import functools
import sys
import weakref
from dataclasses import replace
from typing import Any

from ...never_raise import guarded
from ...telemetry import Recorder
from ...user_errors import passing
from ..outermost_call import begin_noting, here
from ..step import Aspect, Call, compiling, in_turn
from ..telemetry import Telemetry
from .going_on import GoingOn
from .late_losses import LateLosses
from .late_vector import LateVectors
from .noticing import Noticing, models_of
from .rows_left_out import shown_as
from .sampling import Sampling


def looking(recorder: Recorder, torch: Any, telemetry: Telemetry, calls_are_noted: bool) -> Aspect:
    begin_noting()
    if not calls_are_noted:
        _note_calls(torch)
    return aspect_of(Looks(recorder, torch, telemetry), torch)


def aspect_of(looks: Looks, torch: Any) -> Aspect:
    return lambda step: replace(
        step,
        scale=_scale(looks, step.scale),
        backward=_backward(looks, step.backward, torch),
        before_update=in_turn(step.before_update, looks.before_update),
        after_update=in_turn(step.after_update, looks.after_update),
    )


class Looks:
    """What is done at each of the calls, as little as possible on most steps."""

    def __init__(self, recorder: Recorder, torch: Any, telemetry: Telemetry) -> None:
        self.going_on = GoingOn(recorder, torch)
        self.notices = Noticing(recorder, torch, telemetry, self.going_on)
        vectors = LateVectors(torch)
        recorder.on_look(vectors.look)
        self.sampling = Sampling(recorder, torch, vectors)
        self.late = LateLosses(self.notices, vectors)
        self._updating: Any = None  # the optimizer within its step
        self._has_passed = False  # a backward pass was made since the last update
        self._scaled: Any = None  # what GradScaler.scale made last, and of which loss

    def scaled(self, outputs: Any, result: Any) -> None:
        if isinstance(outputs, self.notices.torch.Tensor):
            self._scaled = (id(result), outputs.detach())

    def before_pass(self, tensor: Any) -> Any:
        """A loss to be differentiated instead of this one, or None."""
        notices, shown, instead = self.notices, tensor, None
        if self._scaled is not None:
            scaled, self._scaled = self._scaled, None
            shown = scaled[1] if scaled[0] == id(tensor) else tensor
        if tensor.is_cpu and tensor.numel() == 1:
            value = shown.item()
            if value - value == 0.0:
                notices.lasting = 0
                notices.losses.append((notices.recorder.steps + 1, value))
            else:
                instead = notices.loss_is(value, tensor)
        elif tensor.is_cuda and tensor.numel() == 1:
            self.late.loss(notices.recorder.steps + 1, shown, list(here.calls))
        if self.sampling.due:
            self.sampling.before_pass(tensor, shown, sys._getframe(2))
        return instead

    def after_pass(self, tensor: Any) -> None:
        notices, self._has_passed = self.notices, True
        notices.calls, here.calls = here.calls, notices.calls
        here.calls.clear()
        notices.loss = weakref.ref(tensor)
        if self.sampling.due:
            self.sampling.after_pass()
        if self._updating is not None:
            self.ready_to_update(self._updating)

    def before_update(self, optimizer: Any) -> None:
        """An optimizer that is given a closure makes its backward pass after this, and updates at once."""
        if here.again:
            return
        self._updating = optimizer
        if self._has_passed:
            self.ready_to_update(optimizer)

    def ready_to_update(self, optimizer: Any) -> None:
        going_on = self.going_on
        if not going_on.suspect and not self.notices.lasting:
            self.notices.gradients(optimizer, self.late)
        if self.sampling.due:
            self.sampling.before_update(optimizer)
        if going_on.suspect or going_on.milder.until:
            going_on.before_update(optimizer)
        elif going_on.good.is_due() and not self.notices.lasting:
            going_on.keep(optimizer, self.notices.losses, models_of(self.notices.calls))

    def after_update(self, optimizer: Any) -> None:
        if here.again:
            return
        going_on, sampling = self.going_on, self.sampling
        self._updating, self._has_passed = None, False
        self.notices.calls.clear()
        if sampling.due:
            sampling.after_update(optimizer, not going_on.left_out)
        going_on.after_update(optimizer)
        sampling.due = sampling.schedule.is_due(sampling.recorder.steps + 1)


def _scale(looks: Looks, inner: Call) -> Call:
    noted = guarded(looks.scaled)

    def scale(scaler: Any, outputs: Any) -> Any:
        with passing:
            result = inner(scaler, outputs)
        noted(outputs, result)
        return result

    return scale


def _backward(looks: Looks, inner: Call, torch: Any) -> Call:
    before, after, is_compiling = guarded(looks.before_pass), guarded(looks.after_pass), compiling(torch)
    show = guarded(shown_as)

    def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling():
            return inner(tensor, *args, **kwargs)
        if here.again:
            raise RuntimeError("holdfast: a computation that is looked at has a backward pass of its own")
        if looks.going_on.stop:
            with passing:
                looks.going_on.raise_if_over()
        instead = before(tensor)
        with passing:
            result = inner(tensor if instead is None else instead, *args, **kwargs)
        if instead is not None:
            show(torch, tensor, instead)
        after(tensor)
        return result

    return backward


def _note_calls(torch: Any) -> None:
    """Where no rescue does it."""
    original, grad_enabled, is_compiling = torch.nn.Module.__call__, torch.is_grad_enabled, compiling(torch)

    def __call__(self: Any, *args: Any, **kwargs: Any) -> Any:
        if is_compiling() or here.inside:
            return original(self, *args, **kwargs)
        with passing:
            if not self.training or not grad_enabled():
                return original(self, *args, **kwargs)
            here.calls.append((self, args, kwargs))
            here.inside = True
            try:
                return original(self, *args, **kwargs)
            finally:
                here.inside = False

    torch.nn.Module.__call__ = functools.wraps(original)(__call__)
