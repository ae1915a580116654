"""The loop of TensorFlow's own guide: a compiled step, a compiled validation, data that takes its time."""

import hashlib
import json
import time

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(9)

x = np.random.normal(size=(1990, 256)).astype("float32")
y = np.random.randint(0, 5, size=1990).astype("int32")
model = keras.Sequential([keras.layers.Dense(600, activation="relu") for _ in range(3)] + [keras.layers.Dense(5)])
optimizer = keras.optimizers.Adam(1e-3)
loss_of = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

waited = [0.0]


def slow(a, b):
    time.sleep(0.03)
    return a, b


def slowly(a, b):
    p, q = tf.numpy_function(slow, [a, b], [tf.float32, tf.int32])
    return tf.ensure_shape(p, (None, 256)), tf.ensure_shape(q, (None,))


def timed(data):
    batches = iter(data)
    while True:
        began = time.perf_counter()
        batch = next(batches, None)
        waited[0] += time.perf_counter() - began
        if batch is None:
            return
        yield batch


train = tf.data.Dataset.from_tensor_slices((x, y)).batch(64).map(slowly)
validation = tf.data.Dataset.from_tensor_slices((x[:256], y[:256])).batch(64)


@tf.function
def train_step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


@tf.function
def test_step(x, y):
    return loss_of(y, model(x, training=False))


losses = []
began = time.perf_counter()
for epoch in range(5):
    for a, b in timed(train):
        losses.append(float(train_step(a, b)))
    total = sum(float(test_step(a, b)) for a, b in validation)
    print("epoch", epoch, "%.6f" % total)
took = time.perf_counter() - began

digest = hashlib.sha256(b"".join(v.numpy().tobytes() for v in model.variables)).hexdigest()
report = {"steps": len(losses), "epochs": 5, "losses": losses, "batch_shape": [1990 % 64, 256]}
print(json.dumps({**report, "wait_share": waited[0] / took, "weights": digest}))
