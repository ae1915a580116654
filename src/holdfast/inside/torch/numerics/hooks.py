"""Where the numbers of a PyTorch step are looked at: an aspect of the step, and the outermost calls of modules."""

from __future__ import annotations

import functools
import sys
from dataclasses import replace
from typing import Any, Callable, List, Optional, Set

from ...never_raise import guarded
from ...telemetry import Recorder
from .. import not_splittable, seams
from ..outermost_call import begin_noting, here
from ..step import Aspect, Call, compiling
from ..telemetry import Telemetry
from .going_on import GoingOn
from .late_losses import LateLosses
from .late_vector import LateVectors
from .noticing import Noticing, models_of
from .rows_left_out import shown_as
from .running_statistics import RunningStatistics
from .sampling import Sampling

_process: List[Looks] = []  # one at most


def of_process() -> Optional[Looks]:
    return _process[0] if _process else None


def looking(recorder: Recorder, torch: Any, telemetry: Telemetry, calls_are_noted: bool) -> Looks:
    begin_noting()
    if not calls_are_noted:
        _note_calls(torch)
    looks = Looks(recorder, torch, telemetry)
    _process[:] = [looks]
    _look_before_evaluations(torch, looks)
    recorder.on_look(looks.now_and_then)
    return looks


def aspect_of(looks: Looks, torch: Any) -> Aspect:
    return lambda step: replace(
        step,
        scale=_scale(looks, step.scale),
        backward=_backward(looks, step.backward, torch),
        before_update=(*step.before_update, looks.before_update),
        after_update=(*step.after_update, looks.after_update),
    )


class Looks:
    """What is done at each of the calls. Most steps are plain: their loss is read, and now and then one gradient. Clocks are
    read in one place, ten times a second: in a loop of 1 ms steps each line of memory that is touched counts."""

    def __init__(self, recorder: Recorder, torch: Any, telemetry: Telemetry) -> None:
        self.recorder = recorder
        self.going_on = GoingOn(recorder, torch)
        self.notices = Noticing(recorder, torch, telemetry, self.going_on)
        self.statistics = RunningStatistics(self.notices)
        vectors = LateVectors(torch)
        self.sampling = Sampling(recorder, torch, vectors)
        self.late = LateLosses(self.notices, vectors)
        self._is_capturing: Callable[[], bool] = torch.cuda.is_current_stream_capturing
        self.updating: Any = None  # the optimizer within its step
        self.has_updated = False  # since the last backward pass
        self._updated: Set[int] = set()  # optimizers that have, by id, in steps that are not plain
        self._scaled: Any = None  # what GradScaler.scale made last, and of which loss
        self.plain = False  # nothing is due…
        self.plain_until = sys.maxsize  # …in the steps before this one
        self.left = 0  # plain updates until a gradient is looked at
        self._vectors = vectors
        self._looked_at = (0.0, 0)
        self._known: Set[int] = set()  # optimizers
        self._spread = False  # weights are spread over ranks
        self._updates_in_passes = False  # an optimizer is given a closure: its gradients are there only after the pass

    def is_plain(self) -> bool:
        return (
            self.plain
            and self.recorder.steps + 2 < self.plain_until
            and not self.notices.lasting
            and not self.going_on.stop
            and not (self._updates_in_passes and self.notices.together)
        )

    def _is_spread(self, optimizer: Any) -> bool:
        """To read a number of such a weight is a collective, which the other ranks do not enter at that moment."""
        if not self._spread and id(optimizer) not in self._known:
            self._known.add(id(optimizer))
            self._spread = not_splittable.is_spread(p for group in optimizer.param_groups for p in group["params"])
            if self._spread:
                self.sampling.due = False
                self.recorder.event("numerics.off", reason="weights are spread over several ranks")
        return self._spread

    def gradient_is_fine(self, optimizer: Any) -> bool:
        """One of them, in the short cut of usual steps. Not where more is due, or where it is not finite."""
        if self._is_spread(optimizer):
            self.left = self.notices.every
            return True
        if len(here.calls) > self.statistics.usual_calls or self._rate_jumped(optimizer):
            return False
        self.left = self.notices.every
        return self.notices.probe_is_fine(optimizer)

    def _rate_jumped(self, optimizer: Any) -> bool:
        jumped = self.sampling.rate_jumped(optimizer)
        if jumped:
            self.plain_until = self.sampling.schedule.next_step or sys.maxsize
        return jumped

    def now_and_then(self, moment: float) -> None:
        """Ten times a second."""
        self._vectors.look(moment)
        at, steps = self._looked_at
        self._looked_at = (moment, self.recorder.steps)
        if at and self.recorder.steps > steps:
            self.notices.pace((moment - at) / (self.recorder.steps - steps))
        if self.plain:
            self.plain = not self._is_due()

    def _is_due(self) -> bool:
        """The next step is looked at more closely, or its state is kept."""
        self.sampling.due = self.sampling.schedule.is_due(self.recorder.steps + 1)
        return self.sampling.due or (bool(self.notices.losses) and self.going_on.good.is_due())

    def scaled(self, scaler: Any, outputs: Any, result: Any) -> None:
        if isinstance(outputs, self.notices.torch.Tensor):
            self._scaled = (id(result), outputs.detach(), seams.loss_scale(scaler))

    def before_pass(self, tensor: Any) -> Any:
        """A loss to be differentiated instead of this one, or None."""
        if self._spread:
            return None
        notices, shown, scale, instead = self.notices, tensor, None, None
        if not self.plain and self.has_updated:
            self._new_step()
        if self._scaled is not None:
            scaled, self._scaled = self._scaled, None
            if scaled[0] == id(tensor):
                shown, scale = scaled[1], scaled[2]
        if tensor.is_cpu and tensor.numel() == 1:
            value = shown.item()
            if value - value == 0.0:
                notices.lasting = 0
                notices.losses.append((self.recorder.steps + 1, value))
            else:
                if self.plain:
                    self.plain = False
                    self._new_step()  # plain ones do not say where they begin
                instead = notices.loss_is(value, tensor)
        elif tensor.is_cuda:
            if self._is_capturing():  # what is done now is part of a graph that is replayed
                self.sampling.due = False
                return None
            if tensor.numel() == 1:
                self.late.loss(self.recorder.steps + 1, shown, list(here.calls))
        if not self.plain and self.sampling.due:
            self.sampling.before_pass(tensor, shown, scale, sys._getframe(2))
        return instead

    def loss_of_compiled_step(self, loss: Any) -> None:
        """After its update. Nothing of it can be run again, and nothing is done about it."""
        step, notices = self.recorder.steps, self.notices
        if loss.is_cuda:
            if not self._is_capturing():
                self.late.loss(step, loss, [])
        elif loss.is_cpu:
            value = loss.item()
            notices.losses.append((step, value))
            if value - value == 0.0:
                notices.lasting = 0
                return
            notices.lasting += 1
            if notices.lasting == 1:
                notices.bad_compiled_step(step)

    def _new_step(self) -> None:
        self.has_updated = False
        self._updated.clear()
        self.going_on.new_step()

    def after_pass(self, _tensor: Any) -> None:
        if self.sampling.due:
            self.sampling.after_pass()
        if self.updating is not None:
            self._updates_in_passes = True
            self.ready_to_update(self.updating)

    def before_evaluation(self, model: Any) -> None:
        if not self._spread:
            self.statistics.before_evaluation(model)

    def before_update(self, optimizer: Any) -> None:
        """An optimizer that is given a closure makes its backward pass after this, and updates at once: then it is looked at
        again, after that pass."""
        if self.plain:
            self.left -= 1
            if self.left > 0 and not self.going_on.may_act_together():
                self.updating = optimizer
                return
        elif here.again:
            return
        elif self.has_updated and id(optimizer) in self._updated:
            self._new_step()  # without a tensor's `backward`: `torch.autograd` made the gradients
        self.updating = optimizer
        self.ready_to_update(optimizer)

    def ready_to_update(self, optimizer: Any) -> None:
        if self._is_spread(optimizer):
            return
        going_on, notices = self.going_on, self.notices
        self._rate_jumped(optimizer)
        if not going_on.suspect and not notices.lasting:
            self.left = notices.every
            notices.gradients(optimizer, self.late.gradient)
            if len(here.calls) > self.statistics.usual_calls:
                self.statistics.before_update()
        if going_on.may_act_together():
            notices.of_all_ranks(optimizer)
        if self.plain and not going_on.suspect and not notices.lasting:
            return
        if self.sampling.due:
            self.sampling.before_update(optimizer)
        if going_on.suspect or going_on.milder.until:
            self.plain = False
            going_on.before_update(optimizer)
        elif going_on.good.is_due() and not notices.lasting:
            models = models_of(here.calls)
            if not self.statistics.look(models):
                going_on.keep(optimizer, notices.losses, models)

    def after_update(self, optimizer: Any) -> None:
        if not self.plain and here.again:
            return
        self.updating, self.has_updated = None, True
        here.calls.clear()
        if self._spread or (self.plain and self.recorder.steps + 1 < self.plain_until):
            return
        self._updated.add(id(optimizer))
        going_on, sampling = self.going_on, self.sampling
        if sampling.due:
            sampling.after_update(not going_on.left_out)
        going_on.after_update(optimizer)
        self.plain_until = sampling.schedule.next_step or sys.maxsize
        self.plain = not (self._is_due() or going_on.suspect or going_on.milder.until)


def _scale(looks: Looks, inner: Call) -> Call:
    noted = guarded(looks.scaled)

    def scale(scaler: Any, outputs: Any) -> Any:
        result = inner(scaler, outputs)
        noted(scaler, outputs, result)
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
            looks.going_on.raise_if_over()
        instead = before(tensor)
        result = inner(tensor if instead is None else instead, *args, **kwargs)
        if instead is not None:
            show(torch, tensor, instead)
        if not looks.plain or looks.updating is not None:
            after(tensor)
        return result

    return backward


def _look_before_evaluations(torch: Any, looks: Looks) -> None:
    original, look, is_compiling = torch.nn.Module.eval, guarded(looks.before_evaluation), compiling(torch)

    @functools.wraps(original)
    def eval(self: Any) -> Any:
        if not is_compiling():
            look(self)
        return original(self)

    torch.nn.Module.eval = eval


def _note_calls(torch: Any) -> None:
    """Where no rescue does it."""
    original, grad_enabled, is_compiling = torch.nn.Module.__call__, torch.is_grad_enabled, compiling(torch)

    def outermost(module: Any, args: Any, kwargs: Any) -> Any:
        if not module.training or not grad_enabled():
            return original(module, *args, **kwargs)
        here.calls.append((module, args, kwargs))
        here.inside = True
        try:
            return original(module, *args, **kwargs)
        finally:
            here.inside = False

    call = seams.taken_over_call(original, is_compiling, here, outermost)
    torch.nn.Module.__call__ = functools.wraps(original)(call)
