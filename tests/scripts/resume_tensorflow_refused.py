"""TensorFlow loops whose state cannot be taken exactly. `resume_tensorflow_refused.py KIND`"""

import hashlib
import json
import os
import sys
import time

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import numpy as np
import tensorflow as tf

STEPS = 120
keras.utils.set_random_seed(3)
x = np.random.normal(size=(64, 4)).astype("float32")
y = x[:, :1] * 2
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64).batch(8)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam(1e-2)


def update(inputs, targets):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(inputs) - targets))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
    return loss


def drawn_in_a_function():
    @tf.function
    def step(inputs, targets):
        return update(inputs + tf.random.normal([4], stddev=0.1), targets)

    for epoch in range(STEPS // 8):
        for batch in data:
            step(*batch)
            time.sleep(0.01)


def drawn_with_a_seed():
    for epoch in range(STEPS // 8):
        for inputs, targets in data:
            update(inputs + tf.random.normal([4], stddev=0.1, seed=1), targets)
            time.sleep(0.01)


def asked_in_a_function():
    batches = iter(data.repeat())

    @tf.function
    def step(iterator):
        return update(*next(iterator))

    for number in range(STEPS):
        step(batches)
        time.sleep(0.01)


def epoch_in_a_function():
    @tf.function
    def epoch_of(batches):
        for inputs, targets in batches:
            update(inputs, targets)

    for epoch in range(STEPS // 4):
        epoch_of(data)
        time.sleep(0.02)


def shuffled_before_cache():
    kept = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64).batch(8).cache()
    for epoch in range(STEPS // 8):
        for inputs, targets in kept:
            update(inputs, targets)
            time.sleep(0.01)


def added_to_what_was_read():
    total = 0.0
    rows = np.random.permutation(64)

    @tf.function
    def step(inputs, targets):
        return update(inputs, targets)

    for number in range(STEPS):
        total += step(tf.constant(x[rows[:8]]), tf.constant(y[rows[:8]]))
        rows = np.roll(rows, 1)
        time.sleep(0.01)
    return float(total)


KINDS = {
    one.__name__: one
    for one in (
        drawn_in_a_function, drawn_with_a_seed, asked_in_a_function, epoch_in_a_function, shuffled_before_cache,
        added_to_what_was_read,
    )
}  # fmt: skip

if __name__ == "__main__":
    open("ask", "w").close()
    record = KINDS[sys.argv[1]]()
    weights = hashlib.sha256(b"".join(v.numpy().tobytes() for v in model.variables)).hexdigest()
    print(json.dumps({"weights": weights, "record": record}))
