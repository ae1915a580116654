"""Models of every kind of step, with a layer that runs out of memory on purpose, and how each of them is trained.

The layer raises in the backward pass, where a stock step has updated the later layers already; how many rows it bears is
set from outside.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
import tensorflow as tf
from keras import layers

ANY = 10**9


class Memory:
    """What there is of it, in rows."""

    forward = backward = ANY
    refusals = 0


def take(rows: int, backward: bool) -> np.int32:
    if rows > (Memory.backward if backward else Memory.forward):
        Memory.refusals += 1
        raise MemoryError("OOM when allocating tensor with shape[1]")  # becomes a ResourceExhaustedError
    return np.int32(0)


@tf.custom_gradient
def costly(x: Any) -> Any:
    rows = tf.shape(x)[0]

    def gradient(dy: Any) -> Any:
        with tf.control_dependencies([tf.numpy_function(take, [rows, True], tf.int32)]):
            return tf.identity(dy)

    with tf.control_dependencies([tf.numpy_function(take, [rows, False], tf.int32)]):
        return tf.identity(x), gradient


class Costly(layers.Layer):
    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.supports_masking = True

    def call(self, x: Any) -> Any:
        return costly(x)


random = np.random.default_rng(0)
X, Y, WEIGHTS = random.normal(size=(510, 12)), random.integers(0, 3, 510), random.uniform(size=510)
TOKENS = random.integers(1, 20, (510, 9)) * (np.arange(9) < random.integers(2, 10, (510, 1)))
ENTROPY = keras.losses.SparseCategoricalCrossentropy


def sgd() -> Any:
    return keras.optimizers.SGD(0.05, momentum=0.9)


def dense(loss: Any = None, optimizer: Any = sgd, kind: Any = keras.Model, **how: Any) -> Any:
    inputs = layers.Input((12,))
    hidden = layers.Dense(16, activation="relu", kernel_regularizer=how.pop("regularizer", None))(inputs)
    hidden = Costly()(hidden)
    for extra in how.pop("between", []):
        hidden = extra(hidden)
    outputs = layers.Dense(3, dtype=how.pop("last", None))(layers.Dense(8, activation="tanh")(hidden))
    model = kind(inputs, outputs)
    model.compile(optimizer(), loss or ENTROPY(from_logits=True), **{"metrics": ["accuracy"], **how})
    return model


def masked(sequence: bool) -> Any:
    inputs = layers.Input((9,))
    hidden = layers.Embedding(20, 8, mask_zero=True)(inputs)
    hidden = layers.LSTM(8, return_sequences=sequence)(hidden)
    outputs = layers.Dense(3)(Costly()(hidden))
    model = keras.Model(inputs, outputs)
    model.compile(sgd(), ENTROPY(from_logits=True), metrics=["accuracy"], weighted_metrics=[])
    return model


def attention(optimizer: Any = sgd) -> Any:
    inputs = layers.Input((9,))
    embedded = layers.Embedding(20, 8)(inputs)
    hidden = layers.LayerNormalization()(embedded + layers.MultiHeadAttention(2, 4)(embedded, embedded))
    outputs = layers.Dense(3)(layers.GlobalAveragePooling1D()(Costly()(layers.Dense(16, activation="gelu")(hidden))))
    model = keras.Model(inputs, outputs)
    model.compile(optimizer(), ENTROPY(from_logits=True), metrics=["accuracy"])
    return model


def convolution() -> Any:
    inputs = layers.Input((12,))
    hidden = layers.Conv2D(4, 3, activation="relu")(layers.Reshape((4, 3, 1))(inputs))
    outputs = layers.Dense(3)(layers.Flatten()(Costly()(hidden)))
    model = keras.Model(inputs, outputs)
    model.compile(sgd(), ENTROPY(from_logits=True), metrics=["accuracy"])
    return model


def two_outputs() -> Any:
    inputs = layers.Input((12,))
    hidden = Costly()(layers.Dense(16, activation="relu")(inputs))
    model = keras.Model(
        inputs, {"kind": layers.Dense(3, name="kind")(hidden), "size": layers.Dense(1, name="size")(hidden)}
    )
    losses = {"kind": ENTROPY(from_logits=True), "size": keras.losses.MeanSquaredError(reduction="sum")}
    model.compile(keras.optimizers.SGD(1e-3), losses, loss_weights={"kind": 1.0, "size": 0.3})
    return model


class OwnStep(keras.Model):
    """As the guides show it: own tape, own tracker, a raw value among the logs."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {"raw": loss, **{metric.name: metric.result() for metric in self.metrics}}


class ClipsByHand(OwnStep):
    """What the optimizer gets is no longer a sum over rows."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        weights = self.trainable_variables
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, weights), 0.05)
        self.optimizer.apply_gradients(zip(gradients, weights, strict=True))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {metric.name: metric.result() for metric in self.metrics}


class AfterUpdate(keras.Model):
    """Clips its weights, and keeps an average of them: after the update, and of the new ones."""

    def train_step(self, data: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=data[1], y_pred=self(data[0], training=True))
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        weights[0].assign(tf.clip_by_value(weights[0], -0.3, 0.3))
        self.average.assign(0.9 * self.average + 0.1 * weights[0])
        self.updates.assign_add(1)
        return {"loss": loss}


def after_update() -> Any:
    model = dense(kind=AfterUpdate, metrics=None)
    model.average = keras.Variable(np.zeros((12, 16), "f"), trainable=False)
    model.updates = keras.Variable(0, trainable=False, dtype="int32")
    return model


class Autoencoder(keras.Model):
    """No `call`, no compiled loss, noise of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = keras.Sequential([layers.Dense(16, activation="relu"), Costly(), layers.Dense(8)])
        self.decoder = keras.Sequential([layers.Dense(16, activation="relu"), layers.Dense(12)])
        self.mean_loss = keras.metrics.Mean(name="loss")

    @property
    def metrics(self) -> Any:
        return [self.mean_loss]

    def train_step(self, data: Any) -> Any:
        with tf.GradientTape() as tape:
            mean, spread = tf.split(self.encoder(data[0]), 2, axis=-1)
            drawn = mean + tf.exp(0.5 * spread) * tf.random.normal(tf.shape(mean))
            loss = tf.reduce_mean(tf.reduce_sum((self.decoder(drawn) - data[0]) ** 2, -1) + tf.reduce_sum(mean**2, -1))
        weights = self.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        self.mean_loss.update_state(loss)
        return {"loss": self.mean_loss.result()}


def autoencoder() -> Any:
    model = Autoencoder()
    model.compile(keras.optimizers.SGD(1e-3))
    return model


class TwoUpdates(keras.Model):
    def train_step(self, data: Any) -> Any:
        x, y = data
        for _ in range(2):
            with tf.GradientTape() as tape:
                predicted = self(x, training=True)
                loss = self.compute_loss(y=y, y_pred=predicted)
            self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
        return {"loss": loss, **self.compute_metrics(x, y, predicted)}


class Adversaries(keras.Model):
    """As GANs are written: two models, two optimizers, and noise; the second update sees what the first one left."""

    def __init__(self) -> None:
        super().__init__()
        self.makes = keras.Sequential([layers.Dense(16, activation="relu"), Costly(), layers.Dense(12)])
        self.judges = keras.Sequential([layers.Dense(16, activation="relu"), Costly(), layers.Dense(1)])
        self.makes_optimizer, self.judges_optimizer = keras.optimizers.SGD(0.05), keras.optimizers.SGD(0.05)
        self.tracker = keras.metrics.Mean(name="judged")

    def build(self, shape: Any) -> None:
        self.makes.build((None, 12))
        self.judges.build((None, 12))

    def train_step(self, data: Any) -> Any:
        x, _ = data
        seeds = tf.reverse(x, [1])
        with tf.GradientTape() as tape:
            of_real, of_made = self.judges(x), self.judges(self.makes(seeds))
            judged = tf.reduce_mean(tf.nn.softplus(-of_real)) + tf.reduce_mean(tf.nn.softplus(of_made))
        weights = self.judges.trainable_variables
        self.judges_optimizer.apply(tape.gradient(judged, weights), weights)
        with tf.GradientTape() as tape:
            made = tf.reduce_mean(tf.nn.softplus(-self.judges(self.makes(seeds))))
        weights = self.makes.trainable_variables
        self.makes_optimizer.apply(tape.gradient(made, weights), weights)
        self.tracker.update_state(made)
        return {"judged": self.tracker.result()}


def adversaries() -> Any:
    model = Adversaries()
    model.build((None, 12))
    model.compile()
    return model


class Draws(layers.Layer):
    """What people draw within a model, each in its own way."""

    def call(self, x: Any) -> Any:
        rows = tf.shape(x)[0]
        flips = keras.random.uniform(shape=(rows, 1)) < 0.5
        sampled = keras.random.categorical(tf.zeros((rows, 4)), 1, dtype="int32")
        x = tf.where(flips, x, -x) + 0.1 * keras.random.normal((rows, 16)) + 0.1 * tf.cast(sampled, x.dtype)
        x = x + tf.random.normal(tf.shape(x), stddev=0.1) * tf.random.uniform(shape=(rows, 1), minval=0.5, maxval=1.5)
        x = x + 0.01 * tf.cast(keras.random.randint((rows, 1), 2, 7), x.dtype)
        return tf.nn.dropout(x, 0.2)


class Calls(keras.callbacks.Callback):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.seen.append(("begin", batch))

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seen.append(("end", batch, sorted(logs or {})))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.seen.append(("epoch", epoch))


def whole_batch(y: Any, y_pred: Any) -> Any:
    """Every row against every other one."""
    likeness = tf.matmul(y_pred, y_pred, transpose_b=True)
    return tf.reduce_mean(tf.nn.log_softmax(likeness) * -tf.eye(tf.shape(y_pred)[0]))


def in_batch_negatives(y: Any, y_pred: Any) -> Any:
    """A value for each row, and each of them of all rows: the shape does not tell."""
    return -tf.linalg.diag_part(tf.nn.log_softmax(tf.matmul(y_pred, y_pred, transpose_b=True)))


def correlation(y: Any, y_pred: Any) -> Any:
    a, b = (values - tf.reduce_mean(values) for values in (tf.cast(tf.reshape(y, [-1]), y_pred.dtype), y_pred[:, 0]))
    return 1 - tf.reduce_sum(a * b) / (tf.norm(a) * tf.norm(b) + 1e-6)


class Centred(layers.Layer):
    """Looks across rows, with a loss that does not."""

    def call(self, x: Any) -> Any:
        return x - tf.reduce_mean(x, axis=0, keepdims=True)


def own_mean(y: Any, y_pred: Any) -> Any:
    return tf.reduce_mean(tf.square(tf.one_hot(tf.cast(tf.reshape(y, [-1]), tf.int32), 3) - y_pred))


def own_sum(y: Any, y_pred: Any) -> Any:
    return 51 * own_mean(y, y_pred) * tf.cast(tf.shape(y_pred)[0], tf.float32) / 51


def mixed() -> Any:
    return dense(last="float32", optimizer=sgd)


def fit(model: Any, x: Any = X, y: Any = Y, epochs: int = 5, **how: Any) -> dict[str, Any]:
    calls = Calls()
    keras.utils.set_random_seed(5)
    history = model.fit(x, y, batch_size=51, epochs=epochs, verbose=0, shuffle=True, callbacks=[calls], **how)
    return {"history": history.history, "calls": calls.seen}


def by_hand(model: Any) -> dict[str, Any]:
    return {
        "history": {"loss": [float(model.train_on_batch(X[i : i + 51], Y[i : i + 51])[0]) for i in range(0, 510, 51)]}
    }


def streamed(model: Any) -> dict[str, Any]:
    data = tf.data.Dataset.from_tensor_slices((X.astype("f"), Y, WEIGHTS.astype("f"))).shuffle(510, seed=3).batch(51)
    keras.utils.set_random_seed(5)
    return {"history": model.fit(data.prefetch(2), epochs=5, verbose=0).history}


SEQUENCES = {"x": TOKENS, "y": np.repeat(Y[:, None], 9, 1)}
CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "dense": (dense, fit, {}),
    "sample weights": (lambda: dense(weighted_metrics=["accuracy"]), lambda m: fit(m, sample_weight=WEIGHTS), {}),
    "class weights": (dense, lambda m: fit(m, class_weight={0: 0.2, 1: 1.0, 2: 3.0}), {}),
    "sum and regularisation": (
        lambda: dense(ENTROPY(from_logits=True, reduction="sum"), lambda: keras.optimizers.SGD(1e-3), regularizer="l2"),
        fit, {},
    ),
    "weights in the mean": (
        lambda: dense(ENTROPY(from_logits=True, reduction="mean_with_sample_weight")),
        lambda m: fit(m, sample_weight=WEIGHTS), {},
    ),
    "masked sequence": (lambda: masked(True), lambda m: fit(m, **SEQUENCES), {}),
    "masked sequence, weights": (lambda: masked(True), lambda m: fit(m, **SEQUENCES, sample_weight=np.repeat(WEIGHTS[:, None], 9, 1)), {}),
    "LSTM": (lambda: masked(False), lambda m: fit(m, TOKENS), {}),
    "attention": (attention, lambda m: fit(m, TOKENS), {}),
    "convolution": (convolution, fit, {}),
    "two outputs": (two_outputs, lambda m: fit(m, X, {"kind": Y, "size": X[:, :1]}), {}),
    "own train_step": (lambda: dense(kind=OwnStep), fit, {}),
    "clipped by hand": (lambda: dense(kind=ClipsByHand), fit, {}),
    "after the update": (after_update, fit, {}),
    "own loss, a mean": (lambda: dense(own_mean), fit, {}),
    "own loss, a sum": (lambda: dense(own_sum, lambda: keras.optimizers.SGD(1e-3)), fit, {}),
    "batch norm and dropout": (lambda: dense(own_mean, between=[layers.BatchNormalization(), layers.Dropout(0.3)]), fit, {}),
    "draws of every kind": (
        lambda: dense(between=[layers.BatchNormalization(), Draws(), layers.GaussianNoise(0.1), layers.Dropout(0.1)]),
        fit, {},
    ),
    "an autoencoder's own step": (autoencoder, fit, {}),
    "several steps at once": (lambda: dense(steps_per_execution=4), fit, {}),
    "two updates": (lambda: dense(kind=TwoUpdates), fit, {}),
    "adversaries": (adversaries, fit, {}),
    "eager": (lambda: dense(run_eagerly=True), lambda m: fit(m, epochs=1), {}),
    "train_on_batch": (dense, by_hand, {}),
    "tf.data": (lambda: dense(weighted_metrics=["accuracy"]), streamed, {}),
    "validation": (dense, lambda m: fit(m, validation_data=(X, Y, WEIGHTS), validation_batch_size=170), {"forward": 60}),
    "clipped": (lambda: dense(optimizer=lambda: keras.optimizers.SGD(0.05, global_clipnorm=0.1)), fit, {}),
    "accumulating": (
        lambda: dense(optimizer=lambda: keras.optimizers.SGD(0.05, gradient_accumulation_steps=2)), fit, {},
    ),
    "schedule": (
        lambda: dense(optimizer=lambda: keras.optimizers.SGD(keras.optimizers.schedules.ExponentialDecay(0.1, 5, 0.5))),
        fit, {},
    ),
}  # fmt: skip
REFUSED = {
    "a loss over the whole batch": (lambda: dense(whole_batch), fit, {}),
    "in-batch negatives": (lambda: dense(in_batch_negatives), fit, {}),
    "a correlation": (lambda: dense(correlation), fit, {}),
    "a softmax over rows": (lambda: dense(lambda y, p: -tf.nn.log_softmax(p[:, 0], axis=0)), fit, {}),
    "Keras's own circle loss": (lambda: dense(keras.losses.Circle()), fit, {}),
    "a layer across rows": (lambda: dense(between=[Centred()]), fit, {}),
}
IN_FLOAT64 = {
    "Adam": (lambda: dense(optimizer=lambda: keras.optimizers.Adam(1e-2)), fit, {}),
    # Keras squares the rows of an embedding's gradient before it adds them up.
    "embedding with Adam": (lambda: attention(lambda: keras.optimizers.Adam(1e-2)), lambda m: fit(m, TOKENS), {}),
    "embedding, clipped": (
        lambda: attention(lambda: keras.optimizers.SGD(0.5, global_clipnorm=0.1)), lambda m: fit(m, TOKENS), {},
    ),
}  # fmt: skip
MIXED = {"mixed precision": (mixed, fit, {})}
ADAM = {"Adam in float32": (lambda: dense(optimizer=lambda: keras.optimizers.Adam(1e-3)), fit, {})}
