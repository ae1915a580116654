"""How many graphs a step in pieces takes. Trains one small model in one process, each time as another attempt; prints JSON."""

from __future__ import annotations

import json
import os
import sys
import tempfile
import weakref
from pathlib import Path
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf
from keras import layers

from holdfast.inside import never_raise
from holdfast.inside.headroom import GROUP_FILES
from holdfast.inside.keras import seams
from holdfast.inside.keras import step as taken_over
from holdfast.inside.keras.fit_progress import Fit
from holdfast.inside.keras.late_values import Values
from holdfast.inside.keras.micro_batches import SlicedStep
from holdfast.inside.keras.rescue import Rescue
from holdfast.inside.keras.traced_graphs import let_go
from holdfast.inside.telemetry import Recorder
from holdfast.inside.tensorflow.graph_memory import most_rows
from holdfast.inside.tensorflow.pipeline_buffers import kept_by, parts_of
from holdfast.inside.tensorflow.pipeline_stages import stages_of
from tests.inside.recorded import Events

ROWS, LAST = 8192, 512
X = np.random.default_rng(0).normal(size=(2 * ROWS + LAST, 64)).astype("f")


def group(place: Path, left: int) -> dict[str, Any]:
    """A container that has so much left, by its files."""
    files = GROUP_FILES[1]
    for name, value in ((files.limit, 4 << 30), (files.usage, (4 << 30) - left), (files.swap_limit, 4 << 30)):
        (place / name).write_text(str(value))
    (place / "memory.stat").write_text("")
    return {"folder": str(place), "version": 1}


def train(settings: dict[str, Any], eager: bool = False) -> dict[str, Any]:
    tf.config.experimental.reset_memory_stats("CPU:0")
    events = Events()
    never_raise.on_failure(lambda place, reason: events.text("inside.failed", 0, place=place, reason=reason))
    recorder = Recorder(events, {"policy": "protect", **settings})  # type: ignore[arg-type]
    rescue = Rescue(recorder, tf)
    keras.utils.set_random_seed(1)
    model = keras.Sequential([layers.Input((64,)), *(layers.Dense(64, activation="relu") for _ in range(4))])
    model.compile(keras.optimizers.Adam(1e-4), "mse", metrics=["mae"], run_eagerly=eager)
    with rescue.while_making(model, "train"):
        model.make_train_function()
    on_batch: Any = seams.inner(model.train_function, "one_step_on_data")
    compiled = getattr(on_batch, "__wrapped__", on_batch)
    model.train_function = taken_over.take_over(
        model, model.train_function, Fit(recorder, Values(recorder, tf)), tf, None, rescue
    )
    history = model.fit(X, X, batch_size=ROWS, epochs=2, shuffle=False, verbose=0).history
    return {
        "history": history,
        "whole_graphs": 0 if eager else compiled.experimental_get_tracing_count(),
        "phases": [data["phase"] for kind, data in events.told if kind == "train.phase"],
        "graphs": rescue.graphs(model).value,
        "told": [[kind, data] for kind, data in events.told if kind.startswith(("rescue", "inside"))],
    }


def let_go_of_a_graph() -> dict[str, Any]:
    @tf.function
    def step(x: Any) -> Any:
        return tf.reduce_sum(x * x)

    concrete = step.get_concrete_function(tf.TensorSpec([None, 3]))
    graph = weakref.ref(concrete.graph)
    del concrete
    trace_again = let_go(step)
    gone, none_left = graph() is None, step.experimental_get_tracing_count() == 0
    trace_again()
    result = float(step(tf.ones([2, 3])))
    return {
        "gone": gone and none_left,
        "again": step.experimental_get_tracing_count(),
        "result": result,
    }


def rows_that_kernels_can_count() -> int:
    """Of a step whose widest tensor has 4096 elements a row, in a function that it calls."""
    inner = tf.function(lambda x: tf.reduce_sum(tf.nn.relu(x @ tf.ones((8, 4096)))))
    outer = tf.function(lambda x: inner(x + 1.0))
    return most_rows(outer.get_concrete_function(tf.TensorSpec([None, 8])).graph)


def kept_in_memory() -> list[list[Any]]:
    data = tf.data.Dataset.range(5000).map(lambda i: (tf.zeros((64, 64, 3)), i))
    read = data.cache().shuffle(9000).batch(32).prefetch(7)
    elsewhere = data.cache("/tmp/a-file").batch(8).prefetch(tf.data.AUTOTUNE)  # neither keeps a known number
    words = tf.data.Dataset.from_tensor_slices(["a", "b"]).shuffle(2)
    return [list(one) for one in kept_by(tf.data.Dataset.zip((read, elsewhere, words)))]


def pipelines() -> dict[str, Any]:
    def load(path: Any) -> Any:
        image = tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(path)), (8, 8))
        return tf.image.random_flip_left_right(image)

    def by_python(row: Any) -> Any:
        return tf.numpy_function(np.sort, [row], tf.float32)

    def records(text: Any) -> Any:
        return tf.io.parse_single_example(text, {"x": tf.io.FixedLenFeature([], tf.string)})["x"]

    made = {
        "images": tf.data.Dataset.from_tensor_slices(["a", "b"]).map(load).batch(2),
        "python": tf.data.Dataset.from_tensor_slices(X[:8]).map(by_python, num_parallel_calls=2).batch(2).prefetch(2),
        "generator": tf.data.Dataset.from_generator(lambda: iter(X), output_signature=tf.TensorSpec((64,))),
        "records": tf.data.TFRecordDataset(["a"]).map(records, num_parallel_calls=tf.data.AUTOTUNE).shuffle(4).batch(2),
        "arrays": tf.data.Dataset.from_tensor_slices(X).shuffle(8).map(lambda x: (x * 2, x)).batch(2),
    }
    return {name: stages_of(parts_of(data)) for name, data in made.items()}


class ClipsByHand(keras.Model):
    def train_step(self, data: Any) -> Any:
        x, y = data[:2]
        with tf.GradientTape() as tape:
            loss = self.compute_loss(x, y, self(x, training=True))
        gradients, _ = tf.clip_by_global_norm(tape.gradient(loss, self.trainable_variables), 0.01)
        self.optimizer.apply(gradients, self.trainable_variables)
        return {"loss": loss}


class CountsAfterwards(keras.Model):
    def train_step(self, data: Any) -> Any:
        logs = super().train_step(data)
        self.layers[-1].bias.assign(self.layers[-1].bias * 0.5)
        return logs


def apart_with_updates_by_xla(kind: Any, words: bool) -> float:
    """Of the weights, from those of steps on whole batches: two batches of different sizes, each in three pieces."""

    def made() -> Any:
        keras.utils.set_random_seed(2)
        inputs = layers.Input((6,), dtype="int32" if words else None)
        hidden = layers.GlobalAveragePooling1D()(layers.Embedding(11, 5)(inputs)) if words else inputs
        model = kind(inputs, layers.Dense(3)(layers.Dense(8, activation="tanh")(hidden)))
        model.compile(keras.optimizers.Adam(0.01), "mse")
        model.optimizer.build(model.trainable_variables)
        return model

    random = np.random.default_rng(1)
    batches = [
        (random.integers(0, 11, (rows, 6)) if words else random.normal(size=(rows, 6)), random.normal(size=(rows, 3)))
        for rows in (12, 9)
    ]
    whole, cut = made(), made()
    sliced = SlicedStep(cut, cut.train_step, tf, True, xla_updates=True)
    for x, y in batches:
        whole.train_on_batch(x, y)
        data, rows = (tf.constant(x), tf.constant(y), None), len(x)
        sliced.begin(data, rows, 3)
        for begin in range(0, rows, rows // 3):
            sliced.piece(data, begin, begin + rows // 3)
        sliced.end(data)
    return max(float(np.max(np.abs(a - b))) for a, b in zip(whole.get_weights(), cut.get_weights(), strict=True))


def updates_by_xla() -> dict[str, float]:
    keras.config.set_dtype_policy("float64")
    return {
        "rows of a table": apart_with_updates_by_xla(keras.Model, words=True),
        "gradients changed by the step": apart_with_updates_by_xla(ClipsByHand, words=False),
        "weights changed after the update": apart_with_updates_by_xla(CountsAfterwards, words=True),
    }


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        plenty, little = group(_made(place / "a"), 2 << 30), group(_made(place / "b"), 2 << 20)
        saved = _made(place / "checkpoints")
        (saved / "00000001").mkdir()
        cases = {
            "healthy": {"attempt": 1, "groups": [plenty], "rescue": {"k": None}},
            "foreseen": {"attempt": 1, "groups": [little], "rescue": {"k": None}},
            "killed once": {"attempt": 2, "groups": [little], "rescue": {"k": 4}},
            "killed twice": {"attempt": 3, "groups": [little], "rescue": {"k": 8}},
            "killed late": {
                "attempt": 3,
                "groups": [little],
                "rescue": {"k": 8},
                "checkpoint": {"directory": str(saved)},
            },
            "a budget": {"attempt": 1, "groups": [plenty], "rescue": {"k": None, "host_budget_bytes": 1 << 40}},
        }
        found = {case: train(settings) for case, settings in cases.items()}
        found["eager"] = train(cases["killed once"], eager=True)
    found = {
        **found,
        "let go": let_go_of_a_graph(),
        "most rows": rows_that_kernels_can_count(),
        "kept": kept_in_memory(),
        "pipelines": pipelines(),
    }
    print(json.dumps({**found, "by xla": updates_by_xla()}))


def _made(path: Path) -> Path:
    path.mkdir()
    return path


if __name__ == "__main__":
    sys.exit(main())
