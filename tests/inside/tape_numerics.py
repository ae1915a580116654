"""Loops of the user's own around a tape: some whose numbers go wrong, some that are well. `keras_numerics.py` runs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras
import tensorflow as tf
from keras import layers

from tests.inside.numeric_data import BAD_ROWS, BATCH, X, Y, holed

EPOCHS = 3


def small_model() -> Any:
    return keras.Sequential(
        [layers.Input((6,)), layers.Dense(8, activation="relu"), layers.Dropout(0.1), layers.Dense(1)]
    )


def compiled_loop(x: Any = X, y: Any = Y, rate: float = 0.01, own: Callable[..., Any] | None = None) -> dict[str, Any]:
    model, optimizer = small_model(), keras.optimizers.SGD(rate, momentum=0.9)
    loss_of = own or keras.losses.MeanSquaredError()
    metric = keras.metrics.Mean()

    @tf.function
    def train_step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = loss_of(labels, model(images, training=True))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        metric.update_state(loss)
        return loss

    losses = []
    for epoch in range(EPOCHS):
        metric.reset_state()
        for images, labels in tf.data.Dataset.from_tensor_slices((X if epoch else x, y)).batch(BATCH):
            losses.append(float(train_step(images, labels)))
    model.optimizer = optimizer
    return {"losses": losses, "model": model}


def head_alone() -> dict[str, Any]:
    """The body is no pretrained one, and nobody trains it. Another one is frozen, and a teacher is only compared with: both are
    meant to stay."""
    body = keras.Sequential([layers.Dense(8, activation="tanh", name="dense")], name="body")
    frozen = layers.Dense(8, trainable=False)
    head, optimizer, teacher = layers.Dense(1, name="head"), keras.optimizers.SGD(0.01), layers.Dense(1)

    @tf.function
    def train_step(images: Any, labels: Any) -> Any:
        with tf.GradientTape() as tape:
            given = head(body(images)) + frozen(images)[:, :1]
            loss = tf.reduce_mean(tf.square(given - labels)) + tf.reduce_mean(tf.square(given - teacher(images)))
        grads = tape.gradient(loss, head.trainable_variables)
        optimizer.apply_gradients(zip(grads, head.trainable_variables, strict=True))
        return loss

    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH)
    return {"losses": [float(train_step(*batch)) for _ in range(EPOCHS) for batch in data], "model": None}


def eager_loop(x: Any = X) -> dict[str, Any]:
    model, optimizer = small_model(), keras.optimizers.SGD(0.01)
    losses = []
    for images, labels in tf.data.Dataset.from_tensor_slices((x, Y)).batch(BATCH):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(images, training=True) - labels))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        losses.append(float(loss))
    model.optimizer = optimizer
    return {"losses": losses, "model": model}


def eager_loop_that_cuts_off() -> dict[str, Any]:
    """What goes through NumPy has no gradient; the head learns around it. After each epoch there is a validation."""
    body = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="relu", name="body")])
    head, optimizer = keras.Sequential([layers.Input((8,)), layers.Dense(1, name="head")]), keras.optimizers.SGD(0.01)
    loss_of, losses = keras.losses.MeanSquaredError(), []
    for _ in range(EPOCHS):
        for images, labels in tf.data.Dataset.from_tensor_slices((X, Y)).batch(BATCH):
            with tf.GradientTape() as tape:
                loss = loss_of(labels, head(tf.constant(body(images).numpy())))
            variables = [*body.trainable_variables, *head.trainable_variables]
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            losses.append(float(loss))
        head(body(X))
    return {"losses": losses, "model": None}


def eager_loop_that_spreads() -> dict[str, Any]:
    """A column less a vector, taken in the loop itself."""
    model, optimizer, losses = small_model(), keras.optimizers.SGD(0.01), []
    for start in range(0, len(X), BATCH):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(Y[start : start + BATCH, 0] - model(X[start : start + BATCH])))
        grads = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
        losses.append(float(loss))
    return {"losses": losses, "model": model}


def loop_with_a_generator() -> Any:
    """Noise from a generator of the script's own, which moves on with each draw; a loss that is compared with it."""
    noises = tf.random.Generator.from_seed(9)

    def noisy(labels: Any, given: Any) -> Any:
        return tf.reduce_mean(tf.square(given - labels + noises.normal(tf.shape(labels))))

    return compiled_loop(own=noisy)["model"]


def root_of(labels: Any, given: Any) -> Any:
    return tf.reduce_mean(tf.sqrt(labels - given))


HEALTHY: dict[str, Callable[[], Any]] = {
    "compiled_loop": lambda: compiled_loop()["model"],
    "eager_loop": lambda: eager_loop()["model"],
    "loop_with_a_generator": loop_with_a_generator,
}
SICK: dict[str, Callable[[], dict[str, Any]]] = {
    "loop_with_bad_rows": lambda: compiled_loop(holed(X, BAD_ROWS)),
    "head_alone": head_alone,
    "loop_with_own_loss": lambda: compiled_loop(own=root_of),
    "eager_loop_that_spreads": eager_loop_that_spreads,
    "eager_loop_that_cuts_off": eager_loop_that_cuts_off,
    "eager_loop_with_bad_rows": lambda: eager_loop(holed(X, BAD_ROWS)),
}
