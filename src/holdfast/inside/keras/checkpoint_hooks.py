"""Where checkpoints take hold of Keras. Nothing here is installed unless the run keeps checkpoints."""

from __future__ import annotations

import functools
import sys
from typing import Any

from .. import randomness
from ..never_raise import guarded
from ..preemption import Preemption
from ..ring import VALIDATE
from ..telemetry import Recorder
from . import seams
from .checkpoint import CheckpointWriter
from .data_position import MADE
from .on_jax import JaxState
from .on_tensorflow import TensorFlowState
from .on_torch import TorchState
from .resume import Fits
from .saved_state import BackendState, Seeds


def fits_of(recorder: Recorder, backend: str, wanted: dict[str, Any]) -> Fits:
    randomness.begin_alike(str(wanted["directory"]), bool(wanted.get("resume")))
    keeper = CheckpointWriter(recorder, _state_of(backend), wanted, Seeds())
    take_signals = guarded(Preemption(recorder, keeper.save_then).install)
    return Fits(keeper, take_signals)


def _state_of(backend: str) -> BackendState:
    kinds: dict[str, Any] = {"tensorflow": TensorFlowState, "torch": TorchState, "jax": JaxState}
    state: BackendState = kinds[backend](sys.modules[backend])
    return state


def follow_fits(fits: Fits, recorder: Recorder) -> None:
    _wrap_fit(fits)
    _follow_callbacks(fits)
    _follow_data(fits, recorder)
    _follow_seeds(fits)


def _wrap_fit(fits: Fits) -> None:
    """Inside Keras's own filter of tracebacks, which leaves our frames out as it does its own."""
    trainer = seams.trainer_class()
    trainer.fit = seams.filter_traceback(fits.wrap(trainer.fit.__wrapped__))


def _follow_callbacks(fits: Fits) -> None:
    callback_list = seams.callback_list_class()
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


def _follow_data(fits: Fits, recorder: Recorder) -> None:
    iterator = seams.epoch_iterator_class()
    iterate = iterator.__iter__
    follow = guarded(fits.iterates)

    @functools.wraps(iterate)
    def iterates(self: Any) -> Any:
        result = iterate(self)
        follow(self, recorder.phase_number == VALIDATE)
        return result

    iterator.__iter__ = iterates
    if not fits.keeper.state.is_of_tf_data:
        return
    of_tensorflow = seams.epoch_iterator_class_of("tensorflow")
    get = getattr(of_tensorflow, seams.GET_ITERATOR)

    @functools.wraps(get)
    def get_iterator(self: Any) -> Any:
        setattr(self, MADE, getattr(self, MADE, 0) + 1)
        return get(self)

    setattr(of_tensorflow, seams.GET_ITERATOR, get_iterator)


def _follow_seeds(fits: Fits) -> None:
    seed_generator = seams.seed_generator_class()
    make = seed_generator.__init__
    noticed = guarded(fits.keeper.seeds.noticed)

    @functools.wraps(make)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        make(self, *args, **kwargs)
        noticed(self)

    seed_generator.__init__ = init
