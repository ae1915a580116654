"""Keras 3: where its training is taken over. Once per process, on its classes; a model carries nothing of ours."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any, Callable, Optional

from ..never_raise import guarded
from ..telemetry import Recorder
from ..tensorflow.nesting import hide_frames
from ..tensorflow.optimizer import watch_optimizers
from .checkpoint_hooks import fits_of, follow_fits
from .evaluation import take_over_evaluation
from .fit_progress import Fit
from .late_values import Values
from .rescue import Rescue
from .resume import Fits
from .step import take_over


def install(recorder: Recorder) -> None:
    if "keras.src" not in sys.modules:
        recorder.event("adapter.missing", name="keras", reason="a Keras before 3")
        return
    backend = str(sys.modules["keras"].backend.backend())
    tf = sys.modules.get("tensorflow") if backend == "tensorflow" else None
    values = Values(recorder, tf, backend)
    fit = Fit(recorder, values)
    guarded(hide_frames)("keras.src.utils.traceback_utils")
    fits = guarded(_keep_checkpoints)(recorder, tf, backend)
    rescue = Rescue(recorder, tf)
    guarded(_take_over_steps)(fit, tf, fits, rescue)
    if rescue.on:
        guarded(take_over_evaluation)(_module("models.model").Trainer, rescue)
    guarded(_notice_epochs)(fit)
    guarded(_notice_data)(fit)
    if fits is not None:
        guarded(follow_fits)(fits, recorder, _module)
    if tf is not None:
        guarded(watch_optimizers)(recorder, tf, _module("optimizers.base_optimizer").BaseOptimizer, values)
    recorder.event("adapter.ready", name="keras", backend=backend)


def _module(name: str) -> Any:
    return importlib.import_module(f"keras.src.{name}")  # all of them are loaded: `import keras` is complete


def _keep_checkpoints(recorder: Recorder, tf: Any, backend: str) -> Optional[Fits]:
    wanted = recorder.settings.get("checkpoint")
    if not wanted:
        return None
    if tf is None:
        recorder.event("checkpoint.failed", reason=f"not made for Keras on {backend} yet")
        return None
    return fits_of(recorder, tf, wanted, _module)


def _take_over_steps(fit: Fit, tf: Any, fits: Optional[Fits], rescue: Rescue) -> None:
    trainer: Any = _module("models.model").Trainer
    make = trainer.make_train_function
    keep = fits.keeper if fits is not None else None

    @guarded
    def replace(model: Any, function: Any) -> None:
        stand_in = take_over(model, function, fit, tf, keep, rescue)
        if stand_in is not None:
            model.train_function = stand_in

    @functools.wraps(make)
    def make_train_function(self: Any, *args: Any, **kwargs: Any) -> Any:
        before = self.train_function
        with rescue.while_making(self, "train"):
            result = make(self, *args, **kwargs)
        if self.train_function is not before and self.train_function is not None:
            replace(self, self.train_function)
        return result

    trainer.make_train_function = make_train_function


def _notice_epochs(fit: Fit) -> None:
    """A callback of ours would show in `model.history`'s list and switch asynchronous dispatch off: methods instead."""
    callbacks: Any = _module("callbacks.callback_list").CallbackList
    _before(callbacks, "on_train_begin", lambda *_, **__: fit.fit_begins())
    _before(callbacks, "on_epoch_begin", lambda epoch=-1, *_, **__: fit.epoch_begins(epoch))
    _before(callbacks, "on_train_end", lambda *_, **__: fit.fit_ends())
    for kind in ("test", "predict"):
        _before(callbacks, f"on_{kind}_begin", lambda *_, **__: fit.validation_begins())
        _before(callbacks, f"on_{kind}_end", lambda *_, **__: fit.validation_ends())


def _before(owner: Any, name: str, notice: Callable[..., object]) -> None:
    method = getattr(owner, name)
    notice = guarded(notice)

    @functools.wraps(method)
    def noticed(self: Any, *args: Any, **kwargs: Any) -> Any:
        notice(*args, **kwargs)
        return method(self, *args, **kwargs)

    setattr(owner, name, noticed)


def _notice_data(fit: Fit) -> None:
    iterator: Any = _module("trainers.epoch_iterator").EpochIterator
    iterator._interrupted_warning = Asked(iterator._interrupted_warning, fit.ran_out_of_data)
    iterate = iterator.__iter__

    @functools.wraps(iterate)
    def iterates(self: Any) -> Any:
        fit.iterates(self)
        return iterate(self)

    iterator.__iter__ = iterates


class Asked:
    """A method that is noticed when it is asked for: no frame of ours, so a warning still names its own line."""

    def __init__(self, method: Any, notice: Callable[[Any], object]) -> None:
        self._method = method
        self._notice = notice

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self._method
        self._notice(instance)
        return self._method.__get__(instance, owner)
