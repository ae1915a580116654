"""A training script as people write them; nothing in it knows of Holdfast. `train.py MODEL RESULT.npz [TIMES]`.

TIMES makes the batch larger, and so its step: a container is known to the MiB, what else is in it to some tens of them.
"""

import json
import os
import sys
import time

import keras
import numpy as np
import tensorflow as tf
from keras import layers

KIND, RESULT = sys.argv[1:3]
TIMES = int((sys.argv[3:] or ["1"])[0])
STEPS, EPOCHS = 5, 2
keras.utils.set_random_seed(3)
random = np.random.default_rng(0)


def dense():
    x = random.normal(size=(STEPS * 40000 * TIMES, 16)).astype("f")
    model = keras.Sequential(
        [layers.Input((16,)), *(layers.Dense(64, activation="relu") for _ in range(8)), layers.Dense(1)]
    )
    model.compile(keras.optimizers.SGD(1e-2), "mse", metrics=["mae"])
    return model, {"x": x, "y": x[:, :1] * 2, "batch_size": 40000 * TIMES}


def dense_weighted():
    model, data = dense()
    model.compile(keras.optimizers.SGD(1e-2), "mse", weighted_metrics=["mae"], steps_per_execution=2)
    return model, {**data, "sample_weight": random.uniform(size=len(data["x"])).astype("f"), "validation_split": 0.2}


def dense_mixed():
    keras.config.set_dtype_policy("mixed_bfloat16")
    return dense()


def cnn():
    x = random.normal(size=(STEPS * 128 * TIMES, 48, 48, 3)).astype("f")
    convolutions = [layers.Conv2D(16, 3, activation="relu", padding="same") for _ in range(5)]
    model = keras.Sequential(
        [layers.Input((48, 48, 3)), *convolutions, layers.GlobalAveragePooling2D(), layers.Dense(4)]
    )
    model.compile(keras.optimizers.SGD(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model, {"x": x, "y": random.integers(0, 4, len(x)), "batch_size": 128 * TIMES}


def lstm():
    x = random.integers(1, 50, (STEPS * 2048 * TIMES, 24)) * (
        np.arange(24) < random.integers(3, 25, (STEPS * 2048 * TIMES, 1))
    )
    recurrent = [layers.Embedding(50, 32, mask_zero=True), layers.LSTM(48, return_sequences=True), layers.Dense(4)]
    model = keras.Sequential([layers.Input((24,)), *recurrent])
    model.compile(keras.optimizers.SGD(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model, {"x": x, "y": random.integers(0, 4, x.shape), "batch_size": 2048 * TIMES}


def transformer():
    x = random.integers(1, 50, (STEPS * 256 * TIMES, 64))
    inputs = layers.Input((64,))
    hidden = layers.Embedding(50, 32)(inputs)
    for _ in range(2):
        hidden = layers.LayerNormalization()(hidden + layers.MultiHeadAttention(4, 8)(hidden, hidden))
        hidden = layers.LayerNormalization()(hidden + layers.Dense(32)(layers.Dense(128, activation="gelu")(hidden)))
    model = keras.Model(inputs, layers.Dense(4)(layers.GlobalAveragePooling1D()(hidden)))
    model.compile(keras.optimizers.SGD(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    data = tf.data.Dataset.from_tensor_slices((x, random.integers(0, 4, len(x)))).batch(256 * TIMES).prefetch(1)
    return model, {"x": data}


def batch_norm():
    """And a validation that is larger than the training."""
    x = random.normal(size=(STEPS * 40000 * TIMES, 16)).astype("f")
    hidden = [layer for _ in range(6) for layer in (layers.Dense(64, activation="relu"), layers.BatchNormalization())]
    model = keras.Sequential([layers.Input((16,)), *hidden, layers.Dense(1)])
    model.compile(keras.optimizers.SGD(1e-2), "mse")
    held_back = {
        "validation_data": (x[: 80000 * TIMES], x[: 80000 * TIMES, :1]),
        "validation_batch_size": 80000 * TIMES,
    }
    return model, {"x": x, "y": x[:, :1] * 2, "batch_size": 40000 * TIMES, **held_back}


def own_step():
    class Own(keras.Model):
        def train_step(self, data):
            x, y = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(y=y, y_pred=self(x, training=True))
            self.optimizer.apply_gradients(zip(tape.gradient(loss, self.trainable_variables), self.trainable_variables))
            return {"loss": loss}

    plain, data = dense()
    model = Own(plain.inputs, plain.outputs)
    model.compile(keras.optimizers.SGD(1e-2), "mse")
    return model, data


model, data = {
    "dense": dense, "dense-weighted": dense_weighted, "dense-mixed": dense_mixed, "cnn": cnn, "lstm": lstm,
    "transformer": transformer, "own-step": own_step, "batch-norm": batch_norm,
}[KIND]()  # fmt: skip


class Measure(keras.callbacks.Callback):
    """Where it is asked: what the process holds before its first step, and the most TensorFlow holds in steps."""

    def on_train_begin(self, logs=None):
        if os.environ.get("LAB_MEASURE"):
            statm = open("/proc/self/statm").read().split()
            held = (int(statm[1]) - int(statm[2])) * os.sysconf("SC_PAGE_SIZE")
            print("LAB", json.dumps({"held": held, **tf.config.experimental.get_memory_info("CPU:0")}), flush=True)

    def on_train_batch_end(self, batch, logs=None):
        if os.environ.get("LAB_MEASURE"):
            print("LAB", json.dumps(tf.config.experimental.get_memory_info("CPU:0")), flush=True)


began = time.perf_counter()
history = model.fit(**data, epochs=EPOCHS, verbose=0, callbacks=[Measure()])
status = dict(line.split(":", 1) for line in open("/proc/self/status").read().splitlines())
held_at_most = sum(sign * (int(status[name].split()[0]) << 10) for name, sign in (("VmHWM", 1), ("RssFile", -1)))
weights = np.concatenate([np.asarray(weight, "float64").ravel() for weight in model.get_weights()])
seconds = time.perf_counter() - began
np.savez(
    RESULT, weights=weights, iterations=int(model.optimizer.iterations), loss=history.history["loss"], seconds=seconds,
    held_at_most=held_at_most,
)  # fmt: skip
