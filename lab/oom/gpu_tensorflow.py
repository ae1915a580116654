"""Keras on TensorFlow as people write it; nothing in it knows of Holdfast.

    gpu_tensorflow.py VARIANT RESULT.npy STEPS.jsonl [--limit MB] [--growth]

`--limit` makes the card small, `--growth` takes memory as it is needed; with neither, TensorFlow takes the whole card. Each
step's begin and end are appended to STEPS.jsonl. The last line printed holds the most TensorFlow had on the card. With
HOLDFAST_LAB_TINY=1 all sizes are so small that a CPU does it in seconds; then no memory is short.
"""

import argparse
import json
import os
import time

import keras
import numpy as np
import tensorflow as tf
from gpu_tensorflow_models import MODELS, trained
from keras import layers

words = argparse.ArgumentParser()
words.add_argument("variant")
words.add_argument("result")
words.add_argument("steps")
words.add_argument("--limit", type=int)
words.add_argument("--growth", action="store_true")
asked = words.parse_args()
TINY = os.environ.get("HOLDFAST_LAB_TINY") == "1"
WIDTH, ROWS = (32, 64) if TINY else (4096, 8192)
FEATURES, EPOCHS = 64, 3
CARDS = tf.config.list_physical_devices("GPU")
CROSS_ENTROPY = keras.losses.SparseCategoricalCrossentropy(from_logits=True)

for card in CARDS:
    if asked.growth:
        tf.config.experimental.set_memory_growth(card, True)
    if asked.limit:
        tf.config.set_logical_device_configuration(
            card, [tf.config.LogicalDeviceConfiguration(memory_limit=asked.limit)]
        )
# Its rounding is coarser than what micro-batches change: the distance from the whole batch's run would show only that.
tf.config.experimental.enable_tensor_float_32_execution(False)
keras.utils.set_random_seed(3)
random = np.random.default_rng(0)
written = os.open(asked.steps, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
halved = 0


def note(what, step):
    line = {"what": what, "step": step, "at": time.time(), "pid": os.getpid()}
    os.write(written, (json.dumps(line) + "\n").encode())


class Steps(keras.callbacks.Callback):
    """What was begun and ended, for whoever watches from outside; a pause makes a step long enough to be hit."""

    def __init__(self, pause_s=0.0):
        super().__init__()
        self.pause_s = pause_s
        self.epoch = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_begin(self, batch, logs=None):
        note("begin", self.epoch * (self.params["steps"] or 0) + batch)

    def on_train_batch_end(self, batch, logs=None):
        time.sleep(self.pause_s)
        note("end", self.epoch * (self.params["steps"] or 0) + batch)

    def on_test_batch_begin(self, batch, logs=None):
        note("begin", f"test {batch}")

    def on_test_batch_end(self, batch, logs=None):
        note("end", f"test {batch}")

    def on_predict_batch_begin(self, batch, logs=None):
        note("begin", f"predict {batch}")

    def on_predict_batch_end(self, batch, logs=None):
        note("end", f"predict {batch}")


def six(width=WIDTH, normal=False, jit="auto", several=1):
    hidden = [layers.Dense(width, activation="relu") for _ in range(6)]
    if normal:
        hidden = [one for dense in hidden for one in (dense, layers.BatchNormalization())]
    model = keras.Sequential([layers.Input((FEATURES,)), *hidden, layers.Dense(1, dtype="float32")])
    optimizer = keras.optimizers.SGD(1e-3, momentum=0.9)
    model.compile(optimizer, "mse", jit_compile=jit, steps_per_execution=several)
    return model


def regression(batches=2, rows=ROWS):
    x = random.normal(size=(batches * rows, FEATURES)).astype("f")
    return x, x[:, :1] * 2


def fitted(model, batch=ROWS, batches=2, epochs=EPOCHS, **more):
    x, y = regression(batches, batch)
    model.fit(x, y, batch_size=batch, epochs=epochs, shuffle=False, verbose=0, callbacks=[Steps()], **more)
    return model


def mixed(policy):
    keras.config.set_dtype_policy(policy)
    return fitted(six())


def catches_itself():
    """As people guard against a batch that is too big: smaller, from the beginning. Compiled code may abort instead."""
    global halved
    rows = ROWS
    x, y = regression()
    while True:
        keras.utils.set_random_seed(3)
        model = six(jit=False)
        try:
            model.fit(x, y, batch_size=rows, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[Steps()])
            return model
        except tf.errors.ResourceExhaustedError:
            rows, halved = rows // 2, halved + 1
            print("out of memory, trying batches of", rows, flush=True)


def validation():
    x, y = regression(8)
    more = {"validation_data": (x, y), "validation_batch_size": 8 * ROWS}
    return fitted(six(), batch=ROWS // 8, epochs=2, **more)


def predict():
    model = fitted(six(), batch=ROWS // 8, epochs=2)
    x, _ = regression(8)
    found = model.predict(x, batch_size=8 * ROWS, verbose=0, callbacks=[Steps()])
    print("predicted", found.shape, float(np.mean(found)), flush=True)
    return model


def tape_loop():
    model = six()
    optimizer = keras.optimizers.SGD(1e-3, momentum=0.9)
    optimizer.build(model.trainable_variables)

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    data = tf.data.Dataset.from_tensor_slices(regression()).batch(ROWS)
    for epoch in range(EPOCHS):
        for number, (x, y) in enumerate(data):
            note("begin", epoch * 2 + number)
            step(x, y).numpy()
            note("end", epoch * 2 + number)
    return model


def train_on_batch():
    model = six()
    x, y = regression()
    for number in range(2 * EPOCHS):
        begin = number % 2 * ROWS
        note("begin", number)
        model.train_on_batch(x[begin : begin + ROWS], y[begin : begin + ROWS])
        note("end", number)
    return model


def transformer():
    rows, length, width, heads, blocks = (8, 16, 16, 2, 1) if TINY else (192, 256, 512, 8, 4)
    inputs = layers.Input((length,))
    hidden = layers.Embedding(1000, width)(inputs)
    for _ in range(blocks):
        hidden = layers.LayerNormalization()(hidden + layers.MultiHeadAttention(heads, width // heads)(hidden, hidden))
        inner = layers.Dense(4 * width, activation="gelu")(hidden)
        hidden = layers.LayerNormalization()(hidden + layers.Dense(width)(inner))
    model = keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(hidden)))
    model.compile(keras.optimizers.SGD(1e-3, momentum=0.9), CROSS_ENTROPY)
    x, y = random.integers(0, 1000, (rows * 2, length)), random.integers(0, 10, rows * 2)
    model.fit(x, y, batch_size=rows, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[Steps()])
    return model


def conv():
    rows, side, filters = (8, 8, 4) if TINY else (768, 64, 64)
    body = [layers.Conv2D(filters, 3, padding="same", activation="relu") for _ in range(6)]
    model = keras.Sequential([layers.Input((side, side, 3)), *body, layers.GlobalAveragePooling2D(), layers.Dense(10)])
    model.compile(keras.optimizers.SGD(1e-3, momentum=0.9), CROSS_ENTROPY)
    x, y = random.normal(size=(rows * 2, side, side, 3)).astype("f"), random.integers(0, 10, rows * 2)
    model.fit(x, y, batch_size=rows, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[Steps()])
    return model


def embedding():
    """Most of the weights are rows of which a batch touches some; Adam's update is dense all the same."""
    words, width, rows, length = (500, 8, 8, 16) if TINY else (200_000, 256, 2048, 256)
    inputs = layers.Input((length,))
    hidden = layers.Dense(width, activation="relu")(layers.Embedding(words, width)(inputs))
    model = keras.Model(inputs, layers.Dense(10)(layers.GlobalAveragePooling1D()(hidden)))
    model.compile(keras.optimizers.Adam(1e-4), CROSS_ENTROPY)
    x, y = random.integers(0, words, (rows * 2, length)), random.integers(0, 10, rows * 2)
    model.fit(x, y, batch_size=rows, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[Steps()])
    return model


def lstm():
    rows, length, width = (8, 8, 8) if TINY else (1024, 200, 256)
    body = [layers.LSTM(width, return_sequences=True), layers.LSTM(width)]
    model = keras.Sequential([layers.Input((length, 32)), *body, layers.Dense(10)])
    model.compile(keras.optimizers.SGD(1e-2, momentum=0.9), CROSS_ENTROPY)
    x, y = random.normal(size=(rows * 2, length, 32)).astype("f"), random.integers(0, 10, rows * 2)
    data = tf.data.Dataset.from_tensor_slices((x, y)).batch(rows).prefetch(2)
    model.fit(data, epochs=EPOCHS, verbose=0, callbacks=[Steps()])
    return model


class OwnStep(keras.Model):
    """A loss and a step of the user's own, with clipping by hand."""

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, self.trainable_variables), 1.0)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


def own_train_step():
    inputs = layers.Input((FEATURES,))
    hidden = inputs
    for _ in range(6):
        hidden = layers.Dense(WIDTH, activation="relu")(hidden)
    model = OwnStep(inputs, layers.Dense(1)(hidden))
    model.compile(keras.optimizers.SGD(1e-3, momentum=0.9), "mse")
    return fitted(model)


def frozen():
    """A backbone that is not trained, and a head that is."""
    rows, side = (4, 32) if TINY else (512, 224)
    backbone = keras.applications.MobileNetV2(
        input_shape=(side, side, 3), include_top=False, weights=None, pooling="avg"
    )
    backbone.trainable = False
    model = keras.Sequential(
        [layers.Input((side, side, 3)), backbone, layers.Dense(256, activation="relu"), layers.Dense(10)]
    )
    model.compile(keras.optimizers.SGD(1e-2, momentum=0.9), CROSS_ENTROPY)
    x, y = random.normal(size=(rows * 2, side, side, 3)).astype("f"), random.integers(0, 10, rows * 2)
    data = tf.data.Dataset.from_generator(
        lambda: zip(x, y), output_signature=(tf.TensorSpec((side, side, 3)), tf.TensorSpec((), tf.int64))
    ).batch(rows)
    model.fit(data, epochs=2, verbose=0, callbacks=[Steps()])
    return model


def whole_card():
    """Six activations of 1.2 million by 8192 are 236 GB, their gradients not counted: no card of 141 GB holds that. With half
    the width XLA was still choosing kernels after 150 s, with or without Holdfast."""
    tf.config.experimental.enable_tensor_float_32_execution(True)
    return fitted(six(width=32 if TINY else 8192), batch=256 if TINY else 1_200_000, epochs=1)


def steady():
    """The same bits each time, shuffled and with dropout: for runs that are ended from outside."""
    tf.config.experimental.enable_op_determinism()
    rows, width = (16, 16) if TINY else (1024, 1024)
    hidden = [one for _ in range(3) for one in (layers.Dense(width, activation="relu"), layers.Dropout(0.1))]
    model = keras.Sequential([layers.Input((FEATURES,)), *hidden, layers.Dense(1)])
    model.compile(keras.optimizers.Adam(1e-3), "mse")
    x, y = regression(50, rows)
    model.fit(x, y, batch_size=rows, epochs=4, shuffle=True, verbose=0, callbacks=[Steps(pause_s=0.05)])
    return model


VARIANTS = {
    "dense": lambda: fitted(six()),
    "dense-jit": lambda: fitted(six(jit=True)),
    "dense-no-jit": lambda: fitted(six(jit=False)),
    "several": lambda: fitted(six(several=4), batches=4),
    "mixed-float16": lambda: mixed("mixed_float16"),
    "mixed-bfloat16": lambda: mixed("mixed_bfloat16"),
    "batch-norm": lambda: fitted(six(normal=True)),
    "catches-itself": catches_itself,
    "validation": validation,
    "predict": predict,
    "tape-loop": tape_loop,
    "train-on-batch": train_on_batch,
    "transformer": transformer,
    "conv": conv,
    "embedding": embedding,
    "lstm": lstm,
    "own-train-step": own_train_step,
    "frozen": frozen,
    "whole-card": whole_card,
    "steady": steady,
}
if asked.variant in MODELS:
    model = trained(asked.variant, 0, Steps(), TINY)
else:
    model = VARIANTS[asked.variant]()
device = "GPU:0" if CARDS else "CPU:0"
peak = tf.config.experimental.get_memory_info(device)["peak"]
np.save(asked.result, np.concatenate([weight.numpy().astype("float32").ravel() for weight in model.weights]))
print(json.dumps({"device": device, "peak": peak, "halved": halved}), flush=True)
