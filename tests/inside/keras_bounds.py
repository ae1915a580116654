"""The two bounds read off the traced step of several models, beside what TensorFlow held at most in it. Prints JSON."""

from __future__ import annotations

import json
import os
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from holdfast.inside.tensorflow.graph_memory import least_bytes, most_bytes

random = np.random.default_rng(0)


def dense() -> tuple[Any, Any]:
    hidden = [layers.Dense(64, activation="relu") for _ in range(8)]
    return keras.Sequential([layers.Input((16,)), *hidden, layers.Dense(4)]), random.normal(size=(40000, 16))


def convolution() -> tuple[Any, Any]:
    hidden = [layers.Conv2D(16, 3, activation="relu", padding="same") for _ in range(5)]
    top = [layers.GlobalAveragePooling2D(), layers.Dense(4)]
    return keras.Sequential([layers.Input((48, 48, 3)), *hidden, *top]), random.normal(size=(128, 48, 48, 3))


def recurrent() -> tuple[Any, Any]:
    hidden = [layers.Embedding(50, 32, mask_zero=True), layers.LSTM(48), layers.Dense(4)]
    return keras.Sequential([layers.Input((24,)), *hidden]), random.integers(1, 50, (2048, 24))


def attention() -> tuple[Any, Any]:
    inputs = layers.Input((64,))
    hidden = layers.Embedding(50, 32)(inputs)
    for _ in range(2):
        hidden = layers.LayerNormalization()(hidden + layers.MultiHeadAttention(4, 8)(hidden, hidden))
        hidden = layers.LayerNormalization()(hidden + layers.Dense(32)(layers.Dense(128, activation="gelu")(hidden)))
    return keras.Model(inputs, layers.Dense(4)(layers.GlobalAveragePooling1D()(hidden))), random.integers(
        1, 50, (256, 64)
    )


def normalised() -> tuple[Any, Any]:
    hidden = [part for _ in range(6) for part in (layers.Dense(64), layers.BatchNormalization(), layers.Dropout(0.1))]
    return keras.Sequential([layers.Input((16,)), *hidden, layers.Dense(4)]), random.normal(size=(40000, 16))


def main() -> None:
    found = {}
    for make in (dense, convolution, recurrent, attention, normalised):
        model, x = make()
        model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
        rows = len(x)
        x = x.astype("f") if x.dtype.kind == "f" else x
        data = tf.data.Dataset.from_tensor_slices((x, random.integers(0, 4, rows))).batch(rows).repeat(3)
        peaks: list[int] = []

        class Peaks(keras.callbacks.Callback):
            def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
                tf.config.experimental.reset_memory_stats("CPU:0")
                self.before = tf.config.experimental.get_memory_info("CPU:0")["current"]

            def on_train_batch_end(self, batch: int, logs: Any = None, peaks: list[int] = peaks) -> None:
                peaks.append(tf.config.experimental.get_memory_info("CPU:0")["peak"] - self.before)

        model.fit(data, epochs=1, verbose=0, callbacks=[Peaks()])
        function = model.train_function
        step = function.__closure__[function.__code__.co_freevars.index("one_step_on_data")].cell_contents
        graph = getattr(step, "__wrapped__", step).get_concrete_function(next(iter(data))).graph
        found[make.__name__] = {
            "least": least_bytes(graph, rows), "held": min(peaks[1:]), "most": most_bytes(graph, rows, 24),
        }  # fmt: skip
    print(json.dumps(found))


if __name__ == "__main__":
    main()
