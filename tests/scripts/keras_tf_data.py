"""A tf.data pipeline that is slow about half of the time; nothing is prefetched."""

import hashlib
import json
import time

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(11)

waited = [0.0]
asked = []  # when each batch was asked for


def load(i):
    began = time.perf_counter()
    time.sleep(0.05)
    batch = np.random.RandomState(i).normal(size=(64, 256)).astype("float32")
    waited[0] += time.perf_counter() - (asked[-1] if len(asked) > 1 else began)  # the first call compiles as well
    return batch


def to_batch(i):
    x = tf.numpy_function(load, [i], tf.float32)
    x = tf.ensure_shape(x, (64, 256))
    return x, tf.reduce_mean(x, axis=1, keepdims=True)


options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False
data = tf.data.Dataset.range(36).map(to_batch).with_options(options)

model = keras.Sequential([keras.layers.Dense(1100, activation="relu") for _ in range(3)] + [keras.layers.Dense(1)])
model.compile("adamw", "mse")

losses, began = [], []


class Count(keras.callbacks.Callback):
    def on_train_begin(self, logs=None):
        began.append(time.perf_counter())

    def on_train_batch_begin(self, batch, logs=None):
        asked.append(time.perf_counter())

    def on_train_batch_end(self, batch, logs=None):
        losses.append(logs["loss"])


model.fit(data, epochs=3, callbacks=[Count()], verbose=0)
took = time.perf_counter() - began[0]
print("done")

digest = hashlib.sha256(b"".join(w.tobytes() for w in model.get_weights())).hexdigest()
report = {"steps": len(losses), "epochs": 3, "losses": losses, "batch_shape": [64, 256]}
print(json.dumps({**report, "wait_share": waited[0] / took, "weights": digest}))
