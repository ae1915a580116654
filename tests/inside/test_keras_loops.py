"""A recurrent layer in pieces takes one turn at a time: each turn has a gradient of all its weights."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.inside.attempts import Run

pytestmark = [
    pytest.mark.skipif(find_spec("tensorflow") is None, reason="needs Keras and TensorFlow"),
    pytest.mark.timeout(240),
]
PROGRAM = """
import json
import keras, numpy, tensorflow as tf
from keras import layers
from holdfast.inside.keras.micro_batches import SlicedStep
from holdfast.inside.tensorflow.memory_forecast import Forecast

model = keras.Sequential([layers.Input((32, 8)), layers.GRU(768, return_sequences=True), layers.GRU(768)])
model.compile("sgd", "mse")
x, y = tf.random.normal([2, 32, 8]), tf.zeros([2, 768])

def gradients(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
    return tape.gradient(loss, [variable.value for variable in model.trainable_variables])

def counted(run):
    run()
    tf.config.experimental.reset_memory_stats("CPU:0")
    before = tf.config.experimental.get_memory_info("CPU:0")["current"]
    run()
    return tf.config.experimental.get_memory_info("CPU:0")["peak"] - before

weights = sum(4 * int(numpy.prod(variable.shape)) for variable in model.trainable_variables)
found = {"weights": weights, "eager": counted(lambda: gradients(x, y))}
micro = SlicedStep(model, model.train_step, tf, True)
found["check"] = counted(lambda: micro.gradient((x, y), [(0, 2)]))
micro.verified = True
found["piece"] = counted(lambda: micro.try_rows((x, y), 2))
print(json.dumps(found))
"""


def test_a_piece_and_the_check_of_a_few_rows_hold_no_gradients_of_all_turns() -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        command, capture_output=True, text=True, cwd=Path(__file__).parents[2], timeout=230, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert found["eager"] > 8 * found["weights"], found
    assert found["piece"] < 3 * found["weights"], found
    assert found["check"] < 3 * found["weights"], found


IN_THIS_ORDER = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import tensorflow, keras
print(hasattr(keras.Model.train_on_batch, "__wrapped__"), hasattr(keras.Model.save_weights, "__wrapped__"))
"""


@pytest.mark.parametrize("order", ["tensorflow, keras", "keras, tensorflow"])
def test_batches_are_followed_whichever_is_imported_first(order: str, tmp_path: Path) -> None:
    """`import tensorflow` imports Keras on its way."""
    run = Run(tmp_path, ["-c", IN_THIS_ORDER.replace("tensorflow, keras", order)])
    attempt = run.start()
    assert attempt.finish() == 0, attempt.err
    assert attempt.out.split() == ["True", "True"]


ON_TORCH = """
import os
os.environ["KERAS_BACKEND"] = "torch"
import keras, torch
model = keras.Sequential([keras.Input((4,)), keras.layers.BatchNormalization(), keras.layers.Dropout(0.1), keras.layers.Dense(1)])
optimizer = torch.optim.Adam(model.parameters())
for _ in range(20):
    loss = torch.nn.functional.mse_loss(model(torch.randn(8, 4), training=True), torch.zeros(8, 1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_what_keras_on_torch_keeps_a_models_weights_in_is_no_last_layer(tmp_path: Path) -> None:
    """It holds means and seeds, too: the layer was told to be frozen."""
    (tmp_path / "script.py").write_text(ON_TORCH)
    attempt = Run(tmp_path / "run", [str(tmp_path / "script.py")]).start()
    assert attempt.finish() == 0, attempt.err
    told = attempt.events("numerics.setup")
    assert told and not any("_torch_params" in setup["last"]["layer"] for setup in told)
