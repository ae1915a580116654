"""Which loader feeds training, how often it was gone through, and which one only validates."""

from __future__ import annotations

import weakref
from typing import Any, Dict, List, Optional, Tuple

from ..ring import PHASES
from ..telemetry import Recorder, now

ENTERED = 100  # so many validations and saves are told as they come…
SELDOM_S = 30.0  # …further ones at most so often: some scripts validate after every step


class Iteration:
    """One pass over a loader."""

    __slots__ = ("ended", "evaluates", "fed", "feeds", "loader", "plain", "position", "trained", "wait_s")

    def __init__(self, loader: int, feeds: bool, wait_s: float) -> None:
        self.loader = loader
        self.feeds = feeds  # its loader is known to feed training
        self.wait_s = wait_s
        self.ended = False
        self.evaluates = False  # asked where gradients are off
        self.plain = False  # nothing more to find out about it
        self.trained = False  # an update followed a batch of it
        self.position: Any = None  # what checkpoints know it by, where they are kept
        self.fed: Any = None  # what is known of its data set, where its batches are looked at


class Loading:
    """An epoch is a pass over a loader in which updates follow its batches, counted from 0."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder
        self.last: Optional[Iteration] = None
        self._loaders: Any = weakref.WeakValueDictionary()
        self._feeding: Dict[int, Any] = {}
        self.current: Optional[Iteration] = None
        self._epoch = -1
        self._entered = 0
        self._enter_at = 0.0

    def begin(self, loader: Any, seconds: float) -> Iteration:
        name = id(loader)
        feeds = self._loaders.get(name) is loader and name in self._feeding
        if not feeds:
            self._loaders[name] = loader
            self._feeding.pop(name, None)  # another object at the address of one that is gone
        return Iteration(name, feeds, seconds)

    def feeding(self) -> Any:
        """The loader whose batches training is fed with; None where there is none, or it is gone."""
        return self._loaders.get(self.last.loader) if self.last is not None else None

    def went_on(self, epoch: int) -> None:
        """An earlier attempt had come to this epoch: the pass that is under way is of it."""
        self._epoch = epoch - 1

    def look(self, iteration: Iteration, trains: bool, grad_enabled: bool) -> None:
        iteration.plain = trains and iteration.trained
        if not grad_enabled:
            iteration.evaluates = True
            if trains:
                self.enter("validate")
        elif trains and iteration.feeds:
            self.recorder.phase("train")

    def suspect(self, iteration: Iteration) -> None:
        """Batches of a loader that never fed an update, and no backward between them."""
        if not iteration.feeds:
            self.enter("validate")

    def enter(self, phase: str) -> None:
        moment = now()
        if moment >= self._enter_at and PHASES[self.recorder.phase_number] != phase:
            self._entered += 1
            self._enter_at = moment + (SELDOM_S if self._entered > ENTERED else 0.0)
            self.recorder.phase(phase)

    def elsewhere(self) -> List[Iteration]:
        """For a thread that never asked a loader: another one may do so for it."""
        return [self.last] if self.last is not None else []

    def trained(self, fed: List[Iteration]) -> Tuple[int, float]:
        """An update followed these: the epoch it belongs to, and how long they were waited for.

        A pass that is over without any update was a validation, whatever the gradients' state.
        """
        if len(fed) == 1 and fed[0] is self.current:
            wait_s, fed[0].wait_s = fed[0].wait_s, 0.0
            return self._epoch, wait_s
        wait_s = 0.0
        feeding = [each for each in fed if each.trained or not each.ended]
        for iteration in feeding:
            wait_s += iteration.wait_s
            iteration.wait_s = 0.0
        if feeding and self.current not in feeding:
            self.current = feeding[0]
            if not self.current.trained:
                self._epoch += 1
        for iteration in feeding:
            if not iteration.trained:
                iteration.trained = iteration.feeds = True
                self._feeding[iteration.loader] = True
        return self._epoch, wait_s


def shape_of(batch: Any, depth: int = 3) -> Tuple[int, ...]:
    """Of the first tensor in a batch."""
    kind = type(batch)
    if kind is list or kind is tuple:
        parts = batch
    elif hasattr(batch, "shape"):
        return batch.shape  # type: ignore[no-any-return]
    elif hasattr(batch, "values") and depth:
        parts = batch.values()
    else:
        parts = batch if isinstance(batch, tuple) else ()
    for part in parts:
        shape = getattr(part, "shape", None) or (shape_of(part, depth - 1) if depth else ())
        if shape:
            return shape
    return ()
