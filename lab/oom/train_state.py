"""A training script whose weights, gradients and optimizer are a large part of its memory; nothing in it knows of Holdfast.

    train_state.py MODEL RESULT [PARTS]

PARTS makes the batch so many times smaller: the script as its owner would write it for a smaller machine. What the
laboratory wants to know is printed on lines that begin with LAB: the group's highest use of memory before the result is
written, the size of the weights, and, where LAB_GRADIENTS is set, that of one copy of the whole batch's gradients.
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
PARTS = int((sys.argv[3:] or ["1"])[0])
STEPS = 4
keras.utils.set_random_seed(3)
random = np.random.default_rng(0)
CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def momentum():
    return keras.optimizers.SGD(1e-3, momentum=0.9)


def stack(width, blocks, features=32):
    """Dense layers with an activation whose backward pass keeps several tensors: memory without much arithmetic."""
    hidden = [
        layer
        for _ in range(blocks)
        for layer in (layers.Dense(width), layers.LayerNormalization(), layers.Activation("gelu"))
    ]
    return keras.Sequential([layers.Input((features,)), *hidden, layers.Dense(1)])


def regression(rows, features=32):
    x = random.normal(size=(STEPS * rows, features))
    return {"x": x, "y": x[:, :1] * 2, "rows": rows}


def dense_80():
    model = stack(2048, 6)
    model.compile(momentum(), "mse")
    return model, regression(2048)


def dense_130():
    model = stack(2560, 6)
    model.compile(momentum(), "mse")
    return model, regression(1792)


def dense_adam():
    keras.config.set_dtype_policy("float64")
    model = stack(1280, 7)
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    return model, regression(1536)


def words(rows, length, vocabulary, classes):
    x = random.integers(0, vocabulary, (STEPS * rows, length))
    return {"x": x.astype("int32"), "y": random.integers(0, classes, len(x)), "rows": rows}


def embedding_adam():
    keras.config.set_dtype_policy("float64")
    hidden = [
        layers.Dense(256, activation="gelu"),
        layers.Dense(256, activation="gelu"),
        layers.GlobalAveragePooling1D(),
    ]
    model = keras.Sequential([layers.Input((48,)), layers.Embedding(200_000, 128), *hidden, layers.Dense(8)])
    model.compile(keras.optimizers.Adam(1e-3), CROSS_ENTROPY)
    return model, words(2048, 48, 200_000, 8)


def embedding_sgd():
    hidden = [
        layers.Dense(512, activation="gelu"),
        layers.Dense(512, activation="gelu"),
        layers.GlobalAveragePooling1D(),
    ]
    model = keras.Sequential([layers.Input((48,)), layers.Embedding(400_000, 240), *hidden, layers.Dense(8)])
    model.compile(momentum(), CROSS_ENTROPY)
    return model, words(2048, 48, 400_000, 8)


def transformer_adamw():
    keras.config.set_dtype_policy("float64")
    length, width = 64, 320
    inputs = layers.Input((length,))
    hidden = layers.Embedding(8000, width)(inputs)
    for _ in range(4):
        attention = layers.MultiHeadAttention(8, width // 8)
        hidden = layers.LayerNormalization()(hidden + attention(hidden, hidden))
        inner = layers.Dense(4 * width, activation="gelu")(hidden)
        hidden = layers.LayerNormalization()(hidden + layers.Dense(width)(inner))
    model = keras.Model(inputs, layers.Dense(8)(layers.GlobalAveragePooling1D()(hidden)))
    model.compile(keras.optimizers.AdamW(1e-3, global_clipnorm=1.0), CROSS_ENTROPY)
    return model, words(48, length, 8000, 8)


def gru():
    hidden = [layers.Embedding(4000, 512), layers.GRU(1024, return_sequences=True), layers.GRU(1024), layers.Dense(8)]
    model = keras.Sequential([layers.Input((24,)), *hidden])
    model.compile(momentum(), CROSS_ENTROPY)
    return model, words(384, 24, 4000, 8)


def cnn():
    body = [
        layer
        for filters in (32, 48)
        for layer in (layers.Conv2D(filters, 3, padding="same"), layers.Activation("gelu"), layers.AveragePooling2D(2))
    ]
    head = [
        layers.Flatten(),
        layers.Dense(2560, activation="relu"),
        layers.Dense(2560, activation="relu"),
        layers.Dense(8),
    ]
    model = keras.Sequential([layers.Input((32, 32, 3)), *body, *head])
    model.compile(momentum(), CROSS_ENTROPY)
    rows = 768
    x = random.normal(size=(STEPS * rows, 32, 32, 3)).astype("f")
    return model, {"x": x, "y": random.integers(0, 8, len(x)), "rows": rows}


def wide_frozen():
    """The larger part was trained by somebody else: it has weights, and neither gradients nor momentum."""
    inputs = layers.Input((64,))
    frozen = layers.Dense(8192, activation="relu", trainable=False)(inputs)
    frozen = layers.Dense(4096, activation="gelu", trainable=False)(frozen)
    hidden = layers.Dense(2048)(frozen)
    for _ in range(4):
        hidden = layers.Activation("gelu")(layers.Dense(2048)(layers.LayerNormalization()(hidden)))
    model = keras.Model(inputs, layers.Dense(1)(hidden))
    model.compile(momentum(), "mse")
    return model, regression(2560, features=64)


MODELS = {
    "dense-80": dense_80, "dense-130": dense_130, "dense-adam": dense_adam, "embedding-adam": embedding_adam,
    "embedding-sgd": embedding_sgd, "transformer-adamw": transformer_adamw, "gru": gru, "cnn": cnn,
    "wide-frozen": wide_frozen,
}  # fmt: skip


def bytes_of(variables):
    return sum(int(np.prod(one.shape)) * np.dtype(one.dtype).itemsize for one in variables)


def memory_of_the_group():
    """Its highest use, and what a group around it uses beside it; the group is that of this process."""
    found = {}
    for line in open("/proc/self/cgroup").read().splitlines():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            folder, highest, used = "/sys/fs/cgroup/memory" + path, "memory.max_usage_in_bytes", "memory.usage_in_bytes"
        elif not controllers:
            folder, highest, used = "/sys/fs/cgroup" + path, "memory.peak", "memory.current"
        else:
            continue
        try:
            found = {"peak": int(open(f"{folder}/{highest}").read())}
            found["beside"] = int(open(f"{folder}/../{used}").read()) - int(open(f"{folder}/{used}").read())
        except OSError:
            continue
    return found


def gradients(model, data):
    """Of one copy for the whole batch: as large as the weights, or the rows of an embedding that a batch looks up."""
    few = 8
    with tf.GradientTape() as tape:
        loss = model.compute_loss(y=data["y"][:few], y_pred=model(data["x"][:few], training=True))
    size = 0
    for one in tape.gradient(loss, [variable.value for variable in model.trainable_variables]):
        if isinstance(one, tf.IndexedSlices):
            rows = data["rows"] // few
            size += rows * (int(tf.size(one.values)) * one.values.dtype.size + int(tf.size(one.indices)) * 8)
        else:
            size += int(tf.size(one)) * one.dtype.size
    return size


model, data = MODELS[KIND]()
if data["x"].dtype == "float64" and keras.config.dtype_policy().name == "float32":
    data["x"], data["y"] = data["x"].astype("f"), data["y"].astype("f")
began = time.perf_counter()
batch = data["rows"] // PARTS
model.fit(data["x"], data["y"], batch_size=batch, steps_per_epoch=STEPS, shuffle=False, verbose=0)
seconds = time.perf_counter() - began
told = {"seconds": seconds, "iterations": int(model.optimizer.iterations), "weights": bytes_of(model.variables)}
told["resident"] = next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmHWM"))
print("LAB", json.dumps({**told, **memory_of_the_group()}), flush=True)
if os.environ.get("LAB_GRADIENTS"):
    print("LAB", json.dumps({"gradients": gradients(model, data)}), flush=True)
os.makedirs(RESULT, exist_ok=True)
for number, variable in enumerate(model.weights):  # one by one: a second copy of all of them might not fit
    np.save(f"{RESULT}/{number:03d}.npy", variable.numpy())
