"""Lightning's Trainer goes on after a kill: between two batches of its epoch loop all state lies in objects, not in variables.

So the state is taken when that loop is about to ask for a batch, and put back where it does so for the first time in a new
process. Turned down: Lightning's own checkpoints. They begin the data of an epoch anew, and hold neither what was logged in
the epoch so far nor what people's modules and callbacks keep in attributes.
"""

from __future__ import annotations

import functools
import sys
import weakref
from types import FrameType
from typing import Any, List, Optional

from ..never_raise import guarded
from ..script_state import frames
from ..script_state.data_position import ATTRIBUTE, Position
from ..script_state.loop_checkpoint import LoopCheckpoints
from ..script_state.object_graph import ITERATORS, is_users
from ..script_state.refusal import CannotTake
from ..seams import CHECKPOINT, RESUME, Abilities
from ..telemetry import Recorder, now
from ..user_errors import passing
from . import kept_loops, seams
from .trainer_objects import all_but, is_small, plain_values, register, these

SEARCHES = "/tuner/"  # in the paths of files that train for a while to find a learning rate or a batch size

_searched: Any = weakref.WeakSet()  # trainers that did so


def install(recorder: Recorder, name: str) -> None:
    """`name` is that of the module with the loop over an epoch's batches."""
    kept = kept_loops.of_process()
    if kept is None:
        return
    package = name.split(".loops.", 1)[0]
    loop_class = seams.lightning_epoch_loop(name)
    if not all(hasattr(loop_class, method) for method in ("run", "advance")):
        _able(recorder, package)
        return
    frames.follow(str(sys.modules[name].__file__))
    _take_over(kept, loop_class, functools.lru_cache(None)(guarded(functools.partial(_able, recorder, package))))


def _take_over(kept: LoopCheckpoints, loop_class: Any, able: Any) -> None:
    run, advance = loop_class.run, loop_class.advance
    host_of = guarded(_host_of)

    @functools.wraps(run)
    def own_run(self: Any, *args: Any, **kwargs: Any) -> Any:
        kept.host = host_of(self, sys._getframe(1)) if able() else None
        with passing:
            try:
                return run(self, *args, **kwargs)
            finally:
                kept.host = None

    @functools.wraps(advance)
    def own_advance(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kept.host is not None:
            if kept.goal is not None:
                kept.try_to_go_on(None, sys._getframe(1))
            elif now() >= kept.next_at:
                kept.boundary(None, sys._getframe(1))
        with passing:
            return advance(self, *args, **kwargs)

    loop_class.run, loop_class.advance = own_run, own_advance


def _able(recorder: Recorder, package: str) -> bool:
    """Looked for at the first epoch: while its import goes on, much of Lightning is not there yet."""
    version = str(getattr(sys.modules.get(package), "__version__", "?"))
    can = Abilities("Lightning", version, seams.LIGHTNING_SEEN, seams.lightning_state(package))
    can.tell(recorder, "lightning", [CHECKPOINT, RESUME])
    if not (can.can(CHECKPOINT) and can.can(RESUME)):
        return False
    _register(package)
    return True


def _register(package: str) -> None:
    kinds = seams.lightning_classes(package)
    register(kinds.evaluation, all_but("trainer", *seams.VALIDATION_DATA))
    for kind in (*kinds.values, kinds.loop, kinds.fetcher, kinds.combined, kinds.combination):
        register(kind, all_but("trainer"))
    register(kinds.trainer, lambda name, value: name in seams.TRAINER_STATE or plain_values(name, value), is_made=False)
    register(kinds.module, all_but(*seams.BY_ADDRESS))
    register(kinds.data_module, lambda _name, value: is_small(value))
    register(kinds.progress_bar, these())
    register(kinds.connector, these("strategy"))
    register(kinds.strategy, these(*seams.STRATEGY_STATE))
    register(kinds.precision, these("scaler"))


def _host_of(loop: Any, frame: Optional[FrameType]) -> Optional[EpochLoop]:
    """None where it trains only to find something out."""
    while frame is not None:
        if SEARCHES in frame.f_code.co_filename:
            _searched.add(loop.trainer)
            return None
        frame = frame.f_back
    return EpochLoop(loop)


class EpochLoop:
    """The loop that is under way."""

    title = "lightning"

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._trainer = loop.trainer

    @property
    def batch(self) -> int:
        return int(self._loop.batch_progress.current.ready)

    def fed_by(self, positions: List[Position]) -> List[Position]:
        """The iterators of the training data; those of validation are begun anew each time."""
        iterators = seams.training_iterators(self._trainer)
        return [one for one in positions if any(one.iterator() is iterator for iterator in iterators)]

    def check(self) -> None:
        trainer = self._trainer
        if trainer in _searched:
            raise CannotTake("it trains first to find a learning rate or a batch size, and would do so again")
        if trainer.reload_dataloaders_every_n_epochs:
            raise CannotTake("its loaders are made anew after some epochs (reload_dataloaders_every_n_epochs)")
        if trainer.world_size > 1:
            raise CannotTake("several processes train together, which is not followed yet")
        for iterator in seams.training_iterators(trainer):
            kind = type(iterator)
            if not hasattr(iterator, ATTRIBUTE) and kind not in ITERATORS and not is_users(kind):
                raise CannotTake(f"its data comes from {kind.__module__}.{kind.__name__}, whose place cannot be told")
