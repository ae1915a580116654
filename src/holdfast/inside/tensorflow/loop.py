"""What is known of a training loop the user wrote himself: its data, its steps, its loss."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Optional

from ..keras.fit_progress import shape_of
from ..never_raise import guarded
from ..out_of_memory import is_out_of_memory, tell_caught, wanted
from ..ring import TRAIN, VALIDATE
from ..telemetry import Recorder, now
from . import seams
from .nesting import nesting
from .numerics.eager_watch import EagerWatch
from .numerics.watches import WATCHED, Watches
from .nvml import on_gpu
from .updates_by_hand import UpdatesByHand

AT_END_OF_DATA = 0.05  # of the time since the last look at the numbers, for one more


class Loop:
    def __init__(self, recorder: Recorder, function_class: Any) -> None:
        self._recorder = recorder
        self.function_class = function_class
        self.values: Any = None  # comes with Keras, whose optimizers they are read from
        self.kept: Any = None  # checkpoints of this loop, where they are kept: KeptLoops
        self._to_follow: Optional[Callable[[Any], object]] = None  # by Keras, which may be there before they are
        self.watches: Any = None  # of its numbers: Watches
        self.eager: Any = None  # the same, for eager steps: EagerWatch
        self.optimizers: Any = weakref.WeakKeyDictionary()
        self._waits: dict[int, float] = {}  # by iterator, since the last step
        self._trained_on: Callable[[], Any] = lambda: None
        self._last_pulled: Callable[[], Any] = lambda: None
        self._shape: tuple[int, ...] = ()
        self._since = 0.0  # the end of the last pull or step
        self._loss: Any = None
        self._epochs = 0
        self._begun = False
        self.by_hand: Any = None  # UpdatesByHand

    def keep(self, kept: Any) -> None:
        self.kept = kept
        if kept is not None and self._to_follow is not None:
            self._to_follow(kept)

    def when_kept(self, follow: Callable[[Any], object]) -> None:
        """Now, or as soon as it is: `import tensorflow` imports Keras on its way, which is ready first then."""
        self._to_follow = follow
        if self.kept is not None:
            follow(self.kept)

    @guarded
    def begins(self) -> None:
        """Seen before its first step is over: that one may be too large."""
        if not self._begun:
            self._begun = True
            self._recorder.event("train.begun", by="loop")

    def went_on(self, epoch: int) -> None:
        """An earlier attempt had come to this epoch: the iterator that is under way is of it."""
        self._epochs = epoch

    # -- data

    @guarded
    def pulled(self, iterator: Any, wait_s: float, batch: Any) -> None:
        if self._recorder.phase_number == VALIDATE:
            return
        self._waits[id(iterator)] = self._waits.get(id(iterator), 0.0) + wait_s
        if self._last_pulled() is not iterator:
            self._last_pulled = weakref.ref(iterator)
        self._shape = shape_of(batch)
        if self.eager is not None:
            self.eager.pulled(batch)
        self._since = now()

    @guarded
    def exhausted(self, iterator: Any) -> None:
        """What was pulled since the last step was no training data: a validation of the user's own, most likely."""
        self._waits.pop(id(iterator), None)
        if self.watches is not None:
            self.watches.between_steps(AT_END_OF_DATA)

    # -- steps

    @guarded
    def target(self, target: Any) -> None:
        self.begins()
        loss = _scalar(target)
        if self.eager is not None:
            self.eager.asked_for_gradient(loss)
        if self._recorder.wants("loss"):
            self._loss = loss

    @guarded
    def gradient_taken(self, sources: Any) -> None:
        if self.by_hand is not None:
            self.by_hand.gradient_taken(sources)

    def updated_by_hand(self) -> None:
        if self.kept is not None:
            self.kept.updates()
        loss, self._loss = self._loss, None
        self._step(now() - self._since if self._since else 0.0, loss, None)

    @guarded
    def applied(self, optimizer: Any, gradients: Any = None, variables: Any = None) -> None:
        """An eager step: everything since its batch came."""
        if self.by_hand is not None:
            self.by_hand.is_over = True
        moment = now()
        compute_s = moment - self._since if self._since else 0.0
        loss, self._loss = self._loss, None
        self._step(compute_s, loss, weakref.ref(optimizer))
        if self.eager is not None:
            self.eager.applied(optimizer, gradients, variables)

    @guarded
    def called(self, function: Any, began: float, traces: int, args: Any, result: Any) -> None:
        """A call of a tf.function that trains."""
        if self.by_hand is not None:
            self.by_hand.is_over = True
        compute_s = now() - began
        if traces:
            self._recorder.event(
                "train.compiled",
                what=seams.name_of(function),
                step=self._recorder.steps + 1,
                seconds=compute_s,
                traces=function.experimental_get_tracing_count(),
            )
            if not self._recorder.steps:
                self._recorder.phase("compile")
        if not self._waits:
            self._shape = shape_of(args)
        self._step(
            compute_s, _scalar(result) if self._recorder.wants("loss") else None, self.optimizers.get(function), traces
        )

    def measured(self) -> None:
        """Samples tell the gradient's own norm: the optimizer's running mean is not told any more."""
        if self.values is not None:
            self.values.measured = True

    def watch(self, function: Any, call: Any, given: Any, result: Any) -> None:
        """Its numbers, from the second call on."""
        if self.watches is not None and WATCHED not in function.__dict__:
            nesting.depth += 1
            try:
                self.watches.watch_function(function, call, self.optimizers.get(function), given, result)
            finally:
                nesting.depth -= 1

    @guarded
    def failed(self, error: BaseException) -> None:
        """A training step of the script's own. It cannot be run on a part of a batch: what it does with one is not known,
        and one compiled by XLA has lost the variables it was to update."""
        if is_out_of_memory(error):
            tell_caught(self._recorder, "train", 1, error, "gpu" if on_gpu() else None)
            reason = "its training step is a tf.function of the script's own, which is not run on parts of a batch"
            self._recorder.event("rescue.refused", reason=reason, where="train", wanted=wanted(error))

    def _step(self, compute_s: float, loss: Any, optimizer: Optional[Callable[[], Any]], traces: int = 0) -> None:
        recorder = self._recorder
        if recorder.phase_number != TRAIN and not traces:
            recorder.phase("train")
        if self._waits:
            recorder.waited(sum(self._waits.values()))
            self._waits.clear()
            self._count_epochs(self._last_pulled())
        recorder.batch(self._shape)
        recorder.step(compute_s)
        if self.values is not None and optimizer is not None:
            self.values.offer({"loss": loss}, optimizer)
        self._since = now()

    def _count_epochs(self, iterator: Any) -> None:
        """Each new iterator that a step was trained from."""
        if iterator is not None and self._trained_on() is not iterator:
            self._trained_on = weakref.ref(iterator)
            self._recorder.epoch(self._epochs)
            self._epochs += 1


def _scalar(value: Any) -> Any:
    """The first scalar of floats in it."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return next((found for found in map(_scalar, value) if found is not None), None)
    dtype = getattr(value, "dtype", None)
    if getattr(value, "shape", None) == () and getattr(dtype, "is_floating", False):
        return value
    return None


_loops: dict[int, Loop] = {}


def loop_of(recorder: Recorder, tf: Any) -> Loop:
    """The one of this process, whichever of Keras and TensorFlow comes first."""
    if id(recorder) not in _loops:
        loop = _loops[id(recorder)] = Loop(recorder, type(tf.function(lambda: None)))
        loop.watches = guarded(Watches)(recorder, tf)
        loop.by_hand = UpdatesByHand(tf, loop.updated_by_hand)
        loop.eager = guarded(EagerWatch)(recorder, tf, lambda: loop.values)
        if loop.watches is not None:
            loop.watches.measured = loop.measured
    return _loops[id(recorder)]
