"""Trains models whose numbers go wrong, and some that are well, in one process; prints what was told of each as JSON.

The healthy ones are trained bare first: with Holdfast their weights must be the same bit for bit.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

from holdfast.inside import never_raise
from holdfast.inside.keras import adapter
from holdfast.inside.keras.numerics import left_out
from holdfast.inside.telemetry import Recorder
from holdfast.inside.tensorflow import adapter as tensorflow_adapter
from tests.inside import tape_numerics
from tests.inside.numeric_data import BAD_ROWS, BATCH, ROWS, X, Y, holed
from tests.inside.recorded import Events


def dense(loss: Any = "mse", rate: float = 0.01, activation: str = "relu", **how: Any) -> Any:
    model = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation=activation), layers.Dense(1)])
    model.compile(how.pop("optimizer", None) or keras.optimizers.SGD(rate), loss, **how)
    return model


def own_loss(y: Any, given: Any) -> Any:
    return -ops.mean(y * ops.log(given))


def loss_with_root(y: Any, given: Any) -> Any:
    return ops.mean(ops.sqrt(ops.square(y - given)))


def loss_by_average(y: Any, given: Any) -> Any:
    return ops.mean(ops.square(y - given)) / ops.max(ops.abs(y))


class Halving(layers.Layer):
    def call(self, x: Any) -> Any:
        return x / ops.sum(ops.abs(x), axis=-1, keepdims=True)


class OwnStep(keras.Model):
    def train_step(self, data: Any) -> Any:
        x, y = data
        with tf.GradientTape() as tape:
            given = self(x, training=True)
            loss = tf.reduce_mean(tf.exp(given - y))
        grads = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(grads, self.trainable_variables, strict=True))
        return {"loss": loss}


def fit(model: Any, x: Any = X, y: Any = Y, **how: Any) -> Any:
    return model.fit(x, y, **{"batch_size": BATCH, "epochs": 2, "shuffle": False, "verbose": 0, **how})


def hidden_rows() -> Any:
    return fit(dense(), holed(X, BAD_ROWS))


def shuffled_rows() -> Any:
    return fit(dense(), holed(X, BAD_ROWS), shuffle=True)


def inf_column() -> Any:
    return fit(dense(activation="linear"), holed(X, list(range(64, 80)), np.inf, 4))


def bad_targets() -> Any:
    return fit(dense(), X, holed(Y, [100]))


def log_of_zero() -> Any:
    model = keras.Sequential([layers.Input((6,)), layers.Dense(1, activation="relu")])
    model.compile(keras.optimizers.SGD(0.01), own_loss)
    return fit(model, y=np.abs(Y))


def root_gradient() -> Any:
    x, y = X.copy(), Y.copy()
    x[40], y[40] = 0.0, 0.0  # without a bias the model gives 0 there, and the root's gradient is not defined
    model = keras.Sequential([layers.Input((6,)), layers.Dense(1, use_bias=False)])
    model.compile(keras.optimizers.SGD(0.001), loss_with_root)
    return fit(model, x, y)


def bad_average() -> Any:
    y = Y.copy()
    y[48:64] = 0.0  # a batch without any: no single row did it
    return fit(dense(loss_by_average), X, y)


def own_layer() -> Any:
    x = X.copy()
    x[200] = 0.0
    model = keras.Sequential([layers.Input((6,)), Halving(name="halving"), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    return fit(model, x)


def own_step() -> Any:
    y = Y.copy()
    y[130] = -200.0
    inputs = layers.Input((6,))
    model = OwnStep(inputs, layers.Dense(1)(inputs))
    model.compile(keras.optimizers.SGD(1e-4))
    return fit(model, X, y)


def rate_too_high() -> Any:
    return fit(dense(rate=50.0, activation="linear"), epochs=4)


def augmented() -> Any:
    data = tf.data.Dataset.from_tensor_slices((X, Y)).map(lambda x, y: (x / tf.cast(x[0] > -2.0, "float32"), y))
    return dense().fit(data.batch(BATCH), epochs=1, verbose=0)


def terminates_on_nan() -> Any:
    return fit(dense(activation="linear"), holed(X, BAD_ROWS), callbacks=[keras.callbacks.TerminateOnNaN()])


def steep_loss(y: Any, given: Any) -> Any:
    return ops.mean(ops.power(100.0 * (y - given), 4))


def steep() -> Any:
    """No rate that is tried holds it: its gradient has to be clipped."""
    return fit(dense(steep_loss), epochs=4)


def broken_sensor() -> Any:
    return fit(dense(), holed(X, BAD_ROWS, 1e30))


class Averaging(keras.optimizers.SGD):
    """Its slots are for looking at: nothing of them goes into the weights."""

    def build(self, variables: Any) -> None:
        super().build(variables)
        self.averages = [self.add_variable_from_reference(one, name="average") for one in variables]

    def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
        average = self.averages[self._get_variable_index(variable)]
        self.assign(average, 0.9 * average + ops.log(ops.abs(gradient)))
        super().update_step(gradient, variable, learning_rate)


def slot_alone() -> Any:
    x = X.copy()
    x[80:96] = 0.0  # no gradient for a kernel in the sixth batch
    model = keras.Sequential([layers.Input((6,)), layers.Dense(1)])
    model.compile(Averaging(0.01), "mse")
    return fit(model, x)


def log_of_largest(y: Any, given: Any) -> Any:
    return ops.log(ops.max(ops.abs(y))) + 0.0 * ops.mean(given)


def metric_alone() -> Any:
    y = Y.copy()
    y[48:64] = 0.0
    return fit(dense(metrics=[log_of_largest]), X, y)


def metric_then_rows() -> Any:
    return fit(dense(metrics=[lambda y, given: ops.sum(0.0 * given) / ops.sum(0.0 * y)]), holed(X, BAD_ROWS))


def always_bad() -> Any:
    return fit(dense(loss_by_average), X, np.zeros_like(Y))


SICK: dict[str, Callable[[], Any]] = {
    one.__name__: one
    for one in (
        hidden_rows, shuffled_rows, inf_column, bad_targets, log_of_zero, root_gradient, bad_average, own_layer, own_step,
        rate_too_high, augmented, terminates_on_nan, always_bad, steep, broken_sensor, slot_alone, metric_alone,
        metric_then_rows,
    )
}  # fmt: skip


# -- healthy ones


def normalised() -> Any:
    model = keras.Sequential(
        [
            layers.Input((6,)),
            layers.Dense(16),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Dropout(0.3),
            layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse", metrics=["mae"])
    fit(
        model,
        validation_split=0.2,
        shuffle=True,
        callbacks=[keras.callbacks.LearningRateScheduler(lambda e, r: r * 0.9)],
    )
    return model


class MaskedByModel(layers.Layer):
    def call(self, x: Any) -> Any:
        return tf.where(tf.math.is_nan(x), tf.zeros_like(x), x)


def missing_values() -> Any:
    model = keras.Sequential([layers.Input((6,)), MaskedByModel(), layers.Dense(8, activation="relu"), layers.Dense(1)])
    model.compile(keras.optimizers.Adam(0.01), "mse")
    fit(model, holed(X, list(range(0, ROWS, 3))))
    return model


def half_precision() -> Any:
    keras.mixed_precision.set_global_policy("mixed_float16")
    model = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(1, dtype="float32")])
    keras.mixed_precision.set_global_policy("float32")
    model.compile(keras.optimizers.Adam(0.01), "mse")
    fit(model)
    return model


class Speaks(layers.Layer):
    calls = 0

    def call(self, x: Any) -> Any:
        Speaks.calls += 1
        return x


def speaking() -> Any:
    Speaks.calls = 0
    model = keras.Sequential([layers.Input((6,)), Speaks(), layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.01), "mse")
    fit(model)
    model.calls_seen = Speaks.calls
    return model


def embedded() -> Any:
    model = keras.Sequential(
        [layers.Input((5,)), layers.Embedding(30, 4), layers.LSTM(6), layers.Dense(3, activation="softmax")]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    tokens = np.random.default_rng(1).integers(0, 30, (ROWS, 5))
    fit(model, tokens, tokens[:, 0] % 3)
    return model


def classes_of(labels: Any, loss: Any = "sparse_categorical_crossentropy") -> Any:
    model = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(4, "softmax")])
    model.compile(keras.optimizers.SGD(0.01), loss, metrics=["accuracy"])
    return fit(model, X, labels)


def slipped_label() -> Any:
    labels = X[:, :4].argmax(1)
    labels[BAD_ROWS[0]] = 17
    return classes_of(labels)


def missing_in_every_batch() -> Any:
    return fit(dense(), holed(holed(X, list(range(0, ROWS, 3))), list(range(ROWS)), np.inf, column=4), Y)


class Denoiser(keras.Model):
    """Draws by `tf.random` in its own step, and trains its last layer alone."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder, self.decoder = layers.Dense(4, activation="tanh"), layers.Dense(6)

    def call(self, x: Any) -> Any:
        return self.decoder(self.encoder(tf.nn.dropout(x, 0.1)))

    def train_step(self, data: Any) -> Any:
        x, _ = data
        with tf.GradientTape() as tape:
            noise = tf.random.normal(tf.shape(x), stddev=0.1) * tf.random.uniform((), seed=3)
            loss = tf.reduce_mean(tf.square(self(x + noise) - x))
        variables = self.decoder.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        return {"loss": loss}


def drawing() -> Any:
    model = Denoiser()
    model.compile(keras.optimizers.SGD(0.01))
    fit(model, X, X)
    return model


def sorted_by_class() -> Any:
    """Four classes one after the other, of which `validation_split` holds the last ones out."""
    labels = np.sort(X[:, :4].argmax(1))
    model = keras.Sequential([layers.Input((6,)), layers.Dense(4, "softmax")])
    model.compile(keras.optimizers.SGD(0.01), "sparse_categorical_crossentropy")
    history = model.fit(X, labels, epochs=2, batch_size=BATCH, validation_split=0.25, verbose=0)
    history.history["model"] = model
    return history


def class_too_few() -> Any:
    labels = X[:, :4].argmax(1)
    labels[BATCH * 5 :: 7] = 4
    return classes_of(labels)


def ignored_class() -> Any:
    labels = X[:, :4].argmax(1)
    labels[::5] = -1
    loss = keras.losses.SparseCategoricalCrossentropy(ignore_class=-1)
    model = keras.Sequential([layers.Input((6,)), layers.Dense(8, activation="relu"), layers.Dense(4, "softmax")])
    model.compile(keras.optimizers.SGD(0.01), loss)
    fit(model, X, labels)
    return model


SICK.update({one.__name__: one for one in (slipped_label, class_too_few, missing_in_every_batch, sorted_by_class)})
HEALTHY: dict[str, Callable[[], Any]] = {
    one.__name__: one
    for one in (normalised, missing_values, half_precision, speaking, embedded, ignored_class, drawing)
}


SICK.update(tape_numerics.SICK)
HEALTHY.update(tape_numerics.HEALTHY)


def is_finite(model: Any) -> bool:
    return model is not None and all(np.isfinite(np.asarray(one)).all() for one in model.variables)


def state_of(model: Any) -> str:
    values = [np.asarray(one) for one in (*model.variables, *model.optimizer.variables)]
    return str([value.tobytes().hex() for value in values])


def main(cases: list[str]) -> None:
    found: dict[str, Any] = {}
    bare = {}
    for name in [one for one in cases if one in HEALTHY]:
        keras.utils.set_random_seed(1)
        model = HEALTHY[name]()
        bare[name] = (state_of(model), getattr(model, "calls_seen", 0))
    events = Events()
    settings = {"policy": "advise"}
    left_out.STEPS = 20
    never_raise.on_failure(lambda place, reason: events.text("inside.failed", 0, place=place, reason=reason))
    recorder = Recorder(events, settings)  # type: ignore[arg-type]
    tensorflow_adapter.install(recorder)
    adapter.install(recorder)
    for case in cases:
        name, _, policy = case.partition(":")
        settings["policy"] = policy or "advise"
        del events.told[:]
        recorder.steps = 0
        keras.utils.set_random_seed(1)
        if name in HEALTHY:
            model = HEALTHY[name]()
            same = (state_of(model), getattr(model, "calls_seen", 0)) == bare[name]
            found[case] = {"same": same, "told": events.told[:]}
            continue
        ended, history = None, {}
        try:
            done = SICK[name]()
            history = done if isinstance(done, dict) else done.history
        except (RuntimeError, tf.errors.InvalidArgumentError) as error:
            ended = f"{type(error).__name__}: {error}"
        found[case] = {
            "history": {**history, "model": None},
            "finite": is_finite(history.get("model")),
            "ended": ended,
            "told": events.told[:],
        }
    print(json.dumps(found, default=str))


if __name__ == "__main__":
    main(sys.argv[1:])
