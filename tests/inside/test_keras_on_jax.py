"""Keras on JAX: steps and loss are seen. Its variables are empty while `fit` runs, so the learning rate is not."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

from holdfast.journal import Journal
from tests.workplace import Workplace

pytestmark = pytest.mark.skipif(not (find_spec("keras") and find_spec("jax")), reason="needs Keras and JAX")

FIT = """
import time

import keras
import numpy as np

x = np.random.default_rng(0).random((512, 8), dtype="float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
model.compile("adam", "mse")
slow = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: time.sleep(0.05))  # values are read twice a second
model.fit(x, x.sum(axis=1), batch_size=32, epochs=2, verbose=0, callbacks=[slow])
"""


def test_steps_are_counted_and_what_is_not_made_for_it_is_said_once(workplace: Workplace) -> None:
    done = workplace.run(workplace.script(FIT), env={**os.environ, "KERAS_BACKEND": "jax"})
    said = [line for line in done.stderr.decode().splitlines() if line.startswith("holdfast:")]
    assert done.returncode == 0 and len(said) == 1, done.stderr.decode()
    for words in ("survive running out of memory", "not made for Keras on jax yet"):
        assert words in said[0]
    assert "checkpoints" not in said[0]
    (run,) = (workplace.path / ".holdfast/runs").iterdir()
    journal = Journal(run / "journal")
    assert not journal.events("inside.failed")
    seen = {sample.name: sample.value for sample in journal.samples()}
    assert seen["train.steps_count"] == 32 and seen["train.loss"] is not None
