"""Loops of the user's own with Keras: where their checkpoints take hold of `train_on_batch`, and of what scripts save by
themselves."""

from __future__ import annotations

import functools
import sys
from typing import Any

from ..never_raise import guarded
from ..tensorflow.kept_loops import KeptLoops
from ..tensorflow.nesting import nesting
from ..user_errors import passing
from .loop_objects import BATCH, batch_like

GIVEN = ("x", "y", "sample_weight")


def follow_batches(kept: KeptLoops, trainer: Any) -> None:
    train = trainer.train_on_batch

    @functools.wraps(train)
    def train_on_batch(self: Any, *args: Any, **kwargs: Any) -> Any:
        if not nesting.depth:
            args, kwargs = kept.step_begins(sys._getframe(1), (args, kwargs))
            if BATCH not in vars(self):
                _note(self, args, kwargs)
            kept.updates()
        with passing:
            return train(self, *args, **kwargs)

    trainer.train_on_batch = train_on_batch


@guarded
def _note(model: Any, args: Any, kwargs: Any) -> None:
    """What it is built for; not by `setattr`, which tracks what it is given."""
    given = {**dict(zip(GIVEN, args)), **{name: kwargs[name] for name in GIVEN if name in kwargs}}
    vars(model)[BATCH] = batch_like(tuple(given.get(name) for name in GIVEN))


def follow_own_files(kept: KeptLoops, keras: Any) -> None:
    kept.follow_own(keras.Model, ("save", "save_weights"), ("load_weights",))
    for name in ("models", "saving"):
        kept.follow_own(getattr(keras, name), (), ("load_model",), 0)
