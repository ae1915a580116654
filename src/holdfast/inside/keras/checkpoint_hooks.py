"""Where checkpoints take hold of Keras. Nothing here is installed unless the run keeps checkpoints."""

from __future__ import annotations

import functools
import random
import sys
from typing import Any, Callable

from .. import randomness
from ..never_raise import guarded
from ..preemption import Preemption
from ..ring import VALIDATE
from ..telemetry import Recorder
from .checkpoint import CheckpointWriter
from .data_position import MADE
from .resume import Fits
from .saved_state import Seeds

Module = Callable[[str], Any]


def fits_of(recorder: Recorder, tf: Any, wanted: dict[str, Any], module: Module) -> Fits:
    seed = randomness.begin_alike(str(wanted["directory"]), bool(wanted.get("resume")))
    if seed:
        guarded(_shuffle_alike)(seed)
    keeper = CheckpointWriter(recorder, tf, wanted, Seeds())
    guarded(Preemption(recorder, keeper.save_then).install)()
    return Fits(keeper, module("backend.tensorflow.trainer").TFEpochIterator)


def _shuffle_alike(seed: int) -> None:
    """A shuffle of tf.data without any seed gets one of the run's own: as random, and the same in the next attempt.

    Only these: a global seed would make Keras shuffle arrays the same way in every epoch (measured, Keras 3.15).
    """
    seeding: Any = sys.modules["tensorflow.python.data.util.random_seed"]
    context: Any = sys.modules["tensorflow.python.eager.context"]
    config: Any = sys.modules["tensorflow.python.framework.config"]
    get_seed = seeding.get_seed
    chance = random.Random(seed)

    @functools.wraps(get_seed)
    def given(wished: Any) -> Any:
        unseeded = wished is None and context.executing_eagerly() and context.global_seed() is None
        if unseeded and not config.is_op_determinism_enabled():
            wished = chance.randrange(1, 2**31 - 1)
        return get_seed(wished)

    seeding.get_seed = given


def follow_fits(fits: Fits, recorder: Recorder, module: Module) -> None:
    _wrap_fit(fits, module)
    _follow_callbacks(fits, module)
    _follow_data(fits, recorder, module)
    _follow_seeds(fits, module)


def _wrap_fit(fits: Fits, module: Module) -> None:
    """Inside Keras's own filter of tracebacks, which leaves our frames out as it does its own."""
    trainer: Any = module("models.model").Trainer
    trainer.fit = module("utils.traceback_utils").filter_traceback(fits.wrap(trainer.fit.__wrapped__))


def _follow_callbacks(fits: Fits, module: Module) -> None:
    callback_list: Any = module("callbacks.callback_list").CallbackList
    begin, epoch_begin = callback_list.on_train_begin, callback_list.on_epoch_begin
    trains, epoch_begins = guarded(fits.trains), guarded(fits.epoch_begins)

    @functools.wraps(begin)
    def on_train_begin(self: Any, logs: Any = None) -> Any:
        fits.before_training(self)
        result = begin(self, logs)
        trains(self)
        return result

    @functools.wraps(epoch_begin)
    def on_epoch_begin(self: Any, epoch: Any, logs: Any = None) -> Any:
        epoch_begins(epoch)
        return epoch_begin(self, epoch, logs)

    callback_list.on_train_begin, callback_list.on_epoch_begin = on_train_begin, on_epoch_begin


def _follow_data(fits: Fits, recorder: Recorder, module: Module) -> None:
    iterator: Any = module("trainers.epoch_iterator").EpochIterator
    iterate = iterator.__iter__
    follow = guarded(fits.iterates)

    @functools.wraps(iterate)
    def iterates(self: Any) -> Any:
        result = iterate(self)
        follow(self, recorder.phase_number == VALIDATE)
        return result

    iterator.__iter__ = iterates
    of_tensorflow: Any = module("backend.tensorflow.trainer").TFEpochIterator
    get = of_tensorflow._get_iterator

    @functools.wraps(get)
    def get_iterator(self: Any) -> Any:
        setattr(self, MADE, getattr(self, MADE, 0) + 1)
        return get(self)

    of_tensorflow._get_iterator = get_iterator


def _follow_seeds(fits: Fits, module: Module) -> None:
    seed_generator: Any = module("random.seed_generator").SeedGenerator
    make = seed_generator.__init__
    noticed = guarded(fits.keeper.seeds.noticed)

    @functools.wraps(make)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        noticed(self)

    seed_generator.__init__ = init
