"""An error of the user's passes through calls of ours unchanged, and none of our frames are seen in it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from holdfast.inside import never_raise, user_errors
from tests.workplace import Workplace


def fails() -> None:
    raise KeyError("theirs")


def through_ours(call: Callable[..., Any]) -> None:
    """A frame of a file of ours between two of the user's."""
    space: dict[str, Any] = {"call": call}
    exec(compile("def ours():\n    call()", user_errors.OURS + "between.py", "exec"), space)
    space["ours"]()


def names(error: BaseException) -> list[str]:
    return [frame.name for frame in traceback.extract_tb(error.__traceback__)]


def test_the_error_is_the_same_object_with_the_users_frames_alone() -> None:
    error = KeyError("theirs")

    def raises() -> None:
        raise error

    with pytest.raises(KeyError) as raised, user_errors.passing:
        through_ours(lambda: through_ours(raises))
    assert raised.value is error
    assert "ours" not in names(error) and names(error)[-1] == "raises" and names(error).count("through_ours") == 2


def test_without_it_our_frame_would_be_seen() -> None:
    with pytest.raises(KeyError) as raised:
        through_ours(fails)
    assert "ours" in names(raised.value)


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, StopIteration])
def test_whatever_it_is_it_goes_on(kind: type[BaseException]) -> None:
    def raises() -> None:
        raise kind

    with pytest.raises(kind), user_errors.passing:
        raises()


def test_what_returns_is_returned_and_nothing_is_told() -> None:
    told: list[Any] = []
    never_raise.on_failure(lambda *what: told.append(what))
    with user_errors.passing:
        assert len("abc") == 3
    assert told == []


FIT = """
import keras
import numpy as np
import tensorflow as tf

class Picks(keras.losses.Loss):
    def call(self, y, p):
        return tf.reduce_mean(tf.gather(p, tf.cast(y, tf.int32)[:, 0], axis=0))

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", Picks())
y = np.zeros((64, 1))
y[40] = 99
model.fit(np.ones((64, 4)), y, batch_size=8, verbose=0)
"""
LOOP = """
import keras
import tensorflow as tf

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.SGD(0.1)

@tf.function
def step(x, n):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x) ** 2) * tf.cast(tf.gather(tf.range(5), n), tf.float32)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
    return loss

for i in range(9):
    step(tf.ones((8, 4)), tf.constant(i))
"""


@pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs Keras and TensorFlow")
@pytest.mark.parametrize("script", [FIT, LOOP], ids=["fit", "tape"])
def test_what_tensorflow_tells_of_a_graph_has_none_of_our_frames(script: str, workplace: Workplace) -> None:
    """It tells where each operation was made, with the whole stack of then."""
    workplace.script(script)
    done = workplace.run(["python", "train.py"])
    said = done.stderr.decode()
    assert done.returncode == 1
    assert "Detected at node" in said and "train.py" in said
    assert "holdfast/inside" not in said
