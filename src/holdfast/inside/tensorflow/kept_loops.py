"""The calls of a TensorFlow loop at which its checkpoints take hold: iterators, tapes, functions that train, updates."""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import Any, Callable, Dict, Iterable, Optional

from ..never_raise import guarded
from ..script_state.data_position import ATTRIBUTE, Position
from ..script_state.frames import innermost_user
from ..script_state.loop_checkpoint import LoopCheckpoints
from ..script_state.own_files import OwnFiles, loading, saving
from ..script_state.refusal import CannotTake
from ..telemetry import Recorder, now
from . import seams
from .functions import functions_on_stack
from .loop_framework import DRAWN_WITH_A_SEED, TensorFlowLoops
from .nesting import nesting

IN_A_FUNCTION = "the data is asked for inside a tf.function"
DRAWN_IN_A_FUNCTION = (
    "tf.random in the tf.function {} counts inside TensorFlow, where it cannot be read; a tf.random.Generator could be"
)
ASKS = "_holdfast_asks"  # on a tf.function: it asks for data
OF_DATA = "Dataset"  # how the graphs of a data set's own functions are named


class KeptLoops:
    """What the hooks of `step` and `optimizer` tell, where checkpoints are kept."""

    def __init__(self, recorder: Recorder, tf: Any, wanted: Dict[str, Any], loop: Any) -> None:
        dataset, pull = seams.dataset_class(), getattr(seams.iterator_class(), seams.NEXT)
        self._loop = loop
        self._eager = tf.executing_eagerly
        next_of = _stopping(pull, tf.errors.OutOfRangeError)
        self.framework = TensorFlowLoops(tf, dataset.__iter__, next_of, self._check_functions)
        self.checkpoints = LoopCheckpoints(recorder, self.framework, wanted, loop.went_on)
        self._own = OwnFiles(str(wanted["directory"]))
        self._ended = guarded(self.checkpoints.nothing_came)
        self.updates, self.step_begins = self.checkpoints.updates, self.checkpoints.step_begins
        dataset.__iter__ = self._iterating(dataset.__iter__)
        dataset.reduce = self._reducing(dataset.reduce)
        self._follow_tapes(tf.GradientTape)
        self._seeds_data = 0  # a seed is made for a data set, whose iterators are repeated
        self._follow_seeds(seams.module("framework.random_seed"), seams.module("data.util.random_seed"))
        self.follow_own(tf.train.Checkpoint, ("save", "write"), ("restore", "read"))
        self.follow_own(tf.train.CheckpointManager, ("save",), ())

    # -- data

    def _iterating(self, inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @functools.wraps(inner)
        def __iter__(dataset: Any) -> Any:
            if not self._eager():
                return inner(dataset)
            made = self.checkpoints.about_to_make(dataset)
            iterator = inner(dataset)
            self.checkpoints.made(dataset, iterator, made)
            return iterator

        return __iter__

    def _reducing(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        """What a `for` over a data set becomes in a tf.function."""

        @functools.wraps(inner)
        def reduce(dataset: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._eager():
                self.asked_in_a_function()
            return inner(dataset, *args, **kwargs)

        return reduce

    def asked(self, iterator: Any, frame: FrameType) -> Optional[Position]:
        """Before a batch is pulled."""
        position: Optional[Position] = getattr(iterator, ATTRIBUTE, None)
        kept = self.checkpoints
        if position is None:
            return None
        kept.begun = 0
        if position.first is None:
            kept.first_batch(position, frame)
        if kept.goal is not None:
            kept.try_to_go_on(iterator, frame)
        elif now() >= kept.next_at:
            kept.boundary(position, frame)
        return position

    @guarded
    def came(self, position: Position, batch: Any) -> None:
        position.took(batch)
        if self.checkpoints.pending is not None:
            self.checkpoints.decide()

    def over(self, position: Position) -> None:
        self._ended(position)

    @guarded
    def asked_in_a_function(self) -> None:
        """While one is traced. One that trains, too, is not followed: how far it comes in a call is not known."""
        for function in functions_on_stack(sys._getframe(1), self._loop.function_class):
            setattr(function, ASKS, True)

    def _check_functions(self) -> None:
        if any(ASKS in vars(function) for function in list(self._loop.optimizers)):
            raise CannotTake(IN_A_FUNCTION)

    # -- steps

    def traced(self) -> None:
        """A function that trains, before its first run."""
        if self.checkpoints.goal is not None:
            self.checkpoints.has_not_gone_on()

    def _follow_tapes(self, tape: Any) -> None:
        enter, leave = tape.__enter__, tape.__exit__
        framework, eager = self.framework, self._eager

        @functools.wraps(enter)
        def __enter__(self_: Any) -> Any:
            if not nesting.depth and eager():
                frame = sys._getframe(1)
                if not framework.recording and innermost_user(frame) is frame:  # not in a call of a library's
                    self.step_begins(frame)
                framework.recording += 1
            return enter(self_)

        @functools.wraps(leave)
        def __exit__(self_: Any, *error: Any) -> Any:
            if not nesting.depth and eager():
                framework.recording = max(0, framework.recording - 1)
            return leave(self_, *error)

        tape.__enter__, tape.__exit__ = __enter__, __exit__

    # -- checkpoints of the script's own

    def follow_own(self, owner: Any, saves: Iterable[str], loads: Iterable[str], first: int = 1) -> None:
        """Methods, or functions with the path as argument `first`."""
        kept = self.checkpoints
        for name in saves:
            setattr(owner, name, saving(self._own, getattr(owner, name), first))
        for name in loads if kept.goal is not None else ():
            awaited = lambda: kept.goal is not None  # noqa: E731
            setattr(owner, name, loading(self._own, getattr(owner, name), first, awaited, kept.has_its_own))

    # -- what cannot be read

    def _follow_seeds(self, module: Any, of_data: Any) -> None:
        get_seed, get_seed_of_data = module.get_seed, of_data.get_seed
        note = guarded(self._drawn)

        @functools.wraps(get_seed_of_data)
        def for_data(op_seed: Any) -> Any:
            self._seeds_data += 1
            try:
                return get_seed_of_data(op_seed)
            finally:
                self._seeds_data -= 1

        @functools.wraps(get_seed)
        def noted(op_seed: Any) -> Any:
            seeds = get_seed(op_seed)
            if not self._seeds_data and (seeds[0] is not None or seeds[1] is not None):
                note(op_seed)
            return seeds

        module.get_seed, of_data.get_seed = noted, for_data

    def _drawn(self, op_seed: Any) -> None:
        """A seeded operation was made: each run of it counts on, in TensorFlow's own memory. Eagerly, and without a seed of
        its own, it is another operation each time."""
        if not self._eager():
            names = seams.graph_names()
            if not any(name.startswith(OF_DATA) for name in names):
                self.framework.hidden = self.framework.hidden or DRAWN_IN_A_FUNCTION.format(names[0])
        elif op_seed is not None:
            self.framework.drawn += 1
            if self.checkpoints.training:
                self.framework.hidden = self.framework.hidden or DRAWN_WITH_A_SEED


def _stopping(pull: Callable[[Any], Any], out_of_range: Any) -> Callable[[Any], Any]:
    def next_of(iterator: Any) -> Any:
        try:
            return pull(iterator)
        except out_of_range:
            raise StopIteration from None

    return next_of
