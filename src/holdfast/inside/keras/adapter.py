"""Keras 3: where its training is taken over. Once per process, on its classes; a model carries nothing of ours."""

from __future__ import annotations

import functools
import sys
from typing import Any, Callable, Optional

from .. import checkpoint_store
from ..never_raise import guarded
from ..seams import CHECKPOINT, NUMERICS, RESCUE, RESUME, TELEMETRY, Abilities
from ..telemetry import Recorder
from ..tensorflow import seams as tf_seams
from ..tensorflow.kept_loops import KeptLoops
from ..tensorflow.loop import loop_of
from ..tensorflow.nesting import hide_frames
from ..tensorflow.optimizer import watch_optimizers
from . import seams
from .batch_calls import follow_batches, follow_own_files
from .checkpoint_hooks import fits_of, follow_fits
from .evaluation import take_over_evaluation
from .fit_progress import Fit
from .late_values import Values
from .numerics.install import Numerics
from .rescue import Rescue
from .resume import Fits
from .step import take_over


def install(recorder: Recorder) -> None:
    keras: Any = sys.modules["keras"]
    if not seams.is_keras_3():
        recorder.event("adapter.missing", name="keras", reason="a Keras before 3")
        return
    backend = str(keras.backend.backend())
    tf = sys.modules.get("tensorflow") if backend == "tensorflow" else None
    can = _abilities(str(getattr(keras, "__version__", "?")), backend)
    keeps, rescue = recorder.settings.get("checkpoint"), Rescue(recorder, tf, can.can(RESCUE))
    asked = {TELEMETRY: True, CHECKPOINT: keeps, RESUME: keeps, RESCUE: rescue.asked}
    can.tell(recorder, "keras", [ability for ability, is_asked in asked.items() if is_asked], backend=backend)
    if keeps:
        for framework in ("keras", *(("tensorflow",) if tf is not None else ())):  # and loops of the user's own
            checkpoint_store.refuse_to_resume(recorder, keeps, framework, can.why_not(RESUME))
    guarded(hide_frames)(seams.TRACEBACKS)
    values = Values(recorder, tf, backend)
    fit = Fit(recorder, values)
    fits = guarded(fits_of)(recorder, backend, keeps) if keeps and can.can(CHECKPOINT) and can.can(RESUME) else None
    if can.can(TELEMETRY):
        numerics = _numerics(recorder, tf, fit, values, can) if tf is not None else None
        if numerics is not None:
            guarded(numerics.follow_assignments)()
        guarded(_take_over_steps)(fit, tf, fits, rescue, numerics)
        guarded(_notice_epochs)(fit)
        if numerics is not None:
            guarded(_follow_numbers)(numerics)
        guarded(_notice_data)(fit)
        if tf is not None:
            guarded(watch_optimizers)(recorder, tf, seams.optimizer_class(), values)
            loop_of(recorder, tf).when_kept(guarded(functools.partial(_keep_loops, keras, can)))
    if rescue.on:
        guarded(take_over_evaluation)(seams.trainer_class(), rescue)
    if fits is not None:
        guarded(follow_fits)(fits, recorder)
        if can.can(TELEMETRY) and numerics is not None:
            fits.keeper.is_sound = numerics.is_sound
    recorder.event("adapter.ready", name="keras", backend=backend)


def _numerics(recorder: Recorder, tf: Any, fit: Fit, values: Values, can: Abilities) -> Optional[Numerics]:
    if not can.can(NUMERICS):
        recorder.event("numerics.off", reason=can.why_not(NUMERICS))
        loop_of(recorder, tf).watches.off = True
        return None
    return guarded(Numerics)(recorder, tf, fit.epoch_iterator, values)


def _keep_loops(keras: Any, can: Abilities, kept: KeptLoops) -> None:
    kept.framework.hidden = can.why_not(CHECKPOINT) or can.why_not(RESUME)
    follow_batches(kept, seams.trainer_class())
    follow_own_files(kept, keras)


def _abilities(version: str, backend: str) -> Abilities:
    names = {
        "tensorflow": (*seams.ON_TENSORFLOW, *seams.OF_LOOPS, *tf_seams.OF_FIT),
        "torch": seams.ON_TORCH,
        "jax": seams.ON_JAX,
    }
    can = Abilities("Keras", version, seams.SEEN, (*seams.ANY_BACKEND, *names.get(backend, ())))
    made = {
        "tensorflow": (CHECKPOINT, RESUME, RESCUE),
        "torch": (CHECKPOINT, RESUME, RESCUE),
        "jax": (CHECKPOINT, RESUME),
    }
    for ability in (CHECKPOINT, RESUME, RESCUE):
        if ability not in made.get(backend, ()):
            can.cannot(ability, f"not made for Keras on {backend} yet")
    return can


def _take_over_steps(fit: Fit, tf: Any, fits: Optional[Fits], rescue: Rescue, numerics: Optional[Numerics]) -> None:
    trainer = seams.trainer_class()
    make = trainer.make_train_function
    keep = fits.keeper if fits is not None else None

    @guarded
    def replace(model: Any, function: Any) -> None:
        stand_in = take_over(model, function, fit, tf, keep, rescue, numerics)
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
    callbacks = seams.callback_list_class()
    _before(callbacks, "on_train_begin", lambda *_, **__: fit.fit_begins())
    _before(callbacks, "on_epoch_begin", lambda epoch=-1, *_, **__: fit.epoch_begins(epoch))
    _before(callbacks, "on_train_end", lambda *_, **__: fit.fit_ends())
    for kind in ("test", "predict"):
        _before(callbacks, f"on_{kind}_begin", lambda *_, **__: fit.validation_begins())
        _before(callbacks, f"on_{kind}_end", lambda *_, **__: fit.validation_ends())


def _follow_numbers(numerics: Numerics) -> None:
    callbacks = seams.callback_list_class()
    _before(callbacks, "on_epoch_end", numerics.epoch_ends)
    _before(callbacks, "on_test_begin", numerics.validation_begins)
    _before(callbacks, "on_train_end", numerics.fit_ends)


def _before(owner: Any, name: str, notice: Callable[..., object]) -> None:
    method = getattr(owner, name)
    notice = guarded(notice)

    @functools.wraps(method)
    def noticed(self: Any, *args: Any, **kwargs: Any) -> Any:
        notice(*args, **kwargs)
        return method(self, *args, **kwargs)

    setattr(owner, name, noticed)


def _notice_data(fit: Fit) -> None:
    iterator = seams.epoch_iterator_class()
    warning = getattr(iterator, seams.INTERRUPTED, None)
    if warning is not None:
        setattr(iterator, seams.INTERRUPTED, Asked(warning, fit.ran_out_of_data))
    iterate = getattr(iterator, "__iter__", None)
    if iterate is None:  # a Keras that walks through an epoch otherwise
        return

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
