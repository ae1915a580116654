"""The calls of a PyTorch loop at which its checkpoints take hold, as an aspect of the step."""

from __future__ import annotations

import functools
import os
import sys
from dataclasses import replace
from typing import Any, Callable, Dict, Optional

from .. import rank_identity
from ..never_raise import guarded
from ..script_state.data_position import ATTRIBUTE, Position
from ..script_state.loop_checkpoint import WITHOUT_LOADER, LoopCheckpoints
from ..script_state.own_files import loading, saving
from ..script_state.rank_checkpoints import RankCheckpoints, checkpoints_of
from ..telemetry import Recorder, now
from ..user_errors import passing_on
from . import worker_states
from .loader_position import BATCHES
from .loaders import Iteration
from .loop_framework import TorchLoops
from .shared_draws import LOOKED_AT
from .step import Aspect, Call, Step


class _Process:
    kept: Optional[LoopCheckpoints] = None
    clearing: Optional[Clearing] = None


_here = _Process()


def of_process() -> Optional[LoopCheckpoints]:
    """None where no checkpoints are kept."""
    return _here.kept


def clearing_of_process() -> Optional[Clearing]:
    return _here.clearing


def keeping(
    recorder: Recorder, torch: Any, wanted: Optional[Dict[str, Any]], went_on: Callable[[int], None]
) -> Optional[Aspect]:
    """None where no checkpoints are kept."""
    if not wanted or recorder.settings.get("policy") != "protect":
        return None

    def aspect(step: Step) -> Step:
        identity = rank_identity.of(os.environ)
        iterate = worker_states.followed(torch, step.iterate)
        framework = TorchLoops(torch, iterate, step.next_batch)
        kept = checkpoints_of(recorder, framework, wanted, went_on, identity)
        if identity is not None and isinstance(kept, RankCheckpoints):
            framework.ranks = (identity["rank"], identity["world_size"])
        _here.kept, own = kept, kept.own
        if kept.goal is not None:
            torch.load = loading(own, torch.load, 0, lambda: kept.goal is not None, kept.loaded_its_own)
        _here.clearing = clearing = Clearing(torch, kept)
        return replace(
            step,
            iterate=_iterate(kept, iterate),
            next_batch=_next_batch(kept, step.next_batch),
            backward=_backward(kept, step.backward),
            save=saving(own, step.save, 1),
            before_update=(clearing.updates, *step.before_update),
        )

    return aspect


def nothing_due(kept: LoopCheckpoints, source: Optional[Iteration]) -> bool:
    """For the steps to come, until it is time for a checkpoint. `source` is what the loop's batches come from."""
    framework: Any = kept.framework
    if _here.clearing is not None and not _here.clearing.is_followed and (source is None or kept.begun > 1):
        return False  # a loop that may have no loader
    if kept.goal is not None or kept.pending is not None or kept.after_backward or kept.is_looking:
        return False
    if framework.copying is not None:
        return False
    if now() >= kept.next_at or not kept.training:
        return False
    position: Optional[Position] = source.position if source is not None else None
    return source is None or (position is not None and position.first is not None and position.checked is not BATCHES)


def _iterate(kept: LoopCheckpoints, inner: Call) -> Call:
    def __iter__(loader: Any) -> Any:
        made = kept.about_to_make(loader)
        iterator = inner(loader)
        kept.made(loader, iterator, made)
        return iterator

    return __iter__


def _next_batch(kept: LoopCheckpoints, inner: Call) -> Call:
    ended = guarded(kept.nothing_came)

    def __next__(iterator: Any) -> Any:
        position: Optional[Position] = getattr(iterator, ATTRIBUTE, None)
        if position is None:
            return inner(iterator)
        kept.begun = 0
        if position.first is None:
            kept.first_batch(position, sys._getframe(1))
        is_looked_at = position.count < LOOKED_AT and kept.goal is None and position.checked is BATCHES
        draws = position.draws if is_looked_at else None
        if draws is not None:
            guarded(draws.asked)()
        if kept.host is not None:
            pass
        elif kept.goal is not None:
            kept.try_to_go_on(iterator, sys._getframe(1))
        elif now() >= kept.next_at:
            kept.boundary(position, sys._getframe(1))
        try:
            batch = inner(iterator)
        except StopIteration:
            ended(position)
            raise
        position.count += 1
        if draws is not None:
            guarded(draws.given)()
        if position.checked is BATCHES:
            position.note(batch)
        return batch

    return __next__


def _backward(kept: LoopCheckpoints, inner: Call) -> Call:
    def backward(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        if kept.pending is not None:
            kept.decide()
        result = inner(tensor, *args, **kwargs)
        if kept.after_backward or kept.goal is not None:
            kept.gradients_made(sys._getframe(1))
        return result

    return backward


class Clearing:
    """Where gradients are cleared a step begins, in loops that have no loader. Others are not made to pay for it: it is followed once
    there were some updates without a batch in between, or from the start where a place is looked for."""

    def __init__(self, torch: Any, kept: LoopCheckpoints) -> None:
        self._torch, self._kept = torch, kept
        self.is_followed = False
        self._uncleared = 0  # updates since then, of a script that calls no zero_grad
        self._is_cleared = False  # since the last update
        if kept.goal is not None:
            self.follow()

    def updates(self, optimizer: Any) -> None:
        self._kept.updates(optimizer)
        if not self.is_followed:
            self._kept.begun += 1
            if self._kept.begun >= WITHOUT_LOADER:
                self.follow()
            return
        is_cleared, self._is_cleared = self._is_cleared, False
        if not is_cleared:  # nothing else tells of its steps
            self._kept.begun += 1
            if self._kept.begun > WITHOUT_LOADER:  # no batch has come since
                self._look_behind_backward()

    def _look_behind_backward(self) -> None:
        """A script that clears its gradients by itself (`w.grad.zero_()`) has no other place at which a step begins."""
        kept = self._kept
        self._uncleared += 1
        if self._uncleared > WITHOUT_LOADER:
            kept.begun, kept.after_backward = WITHOUT_LOADER + 1, True
        if self._uncleared > 2 * WITHOUT_LOADER and not kept.passes:  # its gradients come from torch.autograd.grad
            kept.at_update = True

    def cleared(self) -> None:
        self._uncleared, self._is_cleared = 0, True

    def follow(self) -> None:
        self.is_followed = True
        for owner in (self._torch.optim.Optimizer, self._torch.nn.Module):
            owner.zero_grad = functools.wraps(owner.zero_grad)(passing_on(_clear(self, self._kept, owner.zero_grad)))


def _clear(clearing: Clearing, kept: LoopCheckpoints, inner: Call) -> Call:
    def zero_grad(owner: Any, *args: Any, **kwargs: Any) -> Any:
        result = inner(owner, *args, **kwargs)
        clearing.cleared()
        kept.step_begins(sys._getframe(1))
        return result

    return zero_grad
