"""Keras on the torch backend, bare and rescued; prints how far apart. The layer refuses in the backward pass."""

from __future__ import annotations

import json
import os
from typing import Any

os.environ["KERAS_BACKEND"] = "torch"
os.environ["OMP_NUM_THREADS"] = "1"  # on a busy machine threads that wait for each other cost minutes

import keras
import numpy as np
import torch
from keras import layers

from holdfast.inside import never_raise
from holdfast.inside.keras import adapter
from holdfast.inside.telemetry import Recorder


class Memory:
    rows, refusals = 10**9, 0


class Take(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Any) -> Any:
        if gradient.shape[0] > Memory.rows:
            Memory.refusals += 1
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")
        return gradient


class Costly(layers.Layer):
    def __init__(self, **how: Any) -> None:
        super().__init__(**how)
        self.supports_masking = True

    def call(self, x: Any) -> Any:
        return Take.apply(x)


random = np.random.default_rng(0)
X, Y, W = random.normal(size=(510, 12)).astype("f"), random.integers(0, 3, 510), random.uniform(size=510).astype("f")
TOKENS = random.integers(1, 20, (510, 9)) * (np.arange(9) < random.integers(2, 10, (510, 1)))
ENTROPY = keras.losses.SparseCategoricalCrossentropy


def dense(loss: Any = None, regularizer: Any = None) -> Any:
    hidden = [layers.Dense(16, activation="relu", kernel_regularizer=regularizer), Costly(), layers.Dense(3)]
    model = keras.Sequential([layers.Input((12,)), *hidden])
    model.compile(keras.optimizers.SGD(0.01, momentum=0.9), loss or ENTROPY(from_logits=True), metrics=["accuracy"])
    return model


def masked() -> Any:
    hidden = [layers.Embedding(20, 8, mask_zero=True), Costly(), layers.Dense(3)]
    model = keras.Sequential([layers.Input((9,), dtype="int32"), *hidden])
    model.compile(keras.optimizers.SGD(0.05), ENTROPY(from_logits=True), metrics=["accuracy"])
    return model


def in_batch_negatives(y: Any, y_pred: Any) -> Any:
    """A value for each row, and each of them of all rows."""
    return -torch.log_softmax(y_pred @ y_pred.T, dim=1).diagonal()


def own_sum(y: Any, y_pred: Any) -> Any:
    return torch.nn.functional.cross_entropy(y_pred, y.reshape(-1).long(), reduction="sum")


def normalised() -> Any:
    hidden = [layers.Dense(16), layers.BatchNormalization(), layers.Dropout(0.2), Costly(), layers.Dense(3)]
    model = keras.Sequential([layers.Input((12,)), *hidden])
    model.compile(keras.optimizers.SGD(0.01), ENTROPY(from_logits=True))
    return model


CASES: dict[str, Any] = {
    "dense": (dense, {"x": X, "y": Y}),
    "sample weights": (dense, {"x": X, "y": Y, "sample_weight": W}),
    "sum": (lambda: dense(ENTROPY(from_logits=True, reduction="sum"), "l2"), {"x": X, "y": Y}),
    "own sum": (lambda: dense(own_sum), {"x": X, "y": Y}),
    "masked": (masked, {"x": TOKENS, "y": np.repeat(Y[:, None], 9, 1)}),
}


def train(case: Any, rows: int = 10**9) -> Any:
    Memory.rows, Memory.refusals = rows, 0
    keras.utils.set_random_seed(1)
    model = case[0]()
    history = model.fit(**case[1], batch_size=51, epochs=2, verbose=0).history
    weights = np.concatenate([np.asarray(w, "float64").ravel() for w in model.get_weights()])
    return weights, history, int(model.optimizer.iterations), Memory.refusals


bare = {name: train(case) for name, case in CASES.items()}
told: list[str] = []


class Ring:
    def text(self, kind: str, _at: float, **data: Any) -> None:
        told.append(f"{kind} {data}")

    def step(self, *_: Any) -> None:
        pass

    value = step

    def command(self) -> None:
        return None


never_raise.on_failure(lambda place, reason: told.append(f"inside.failed {place} {reason}"))
adapter.install(Recorder(Ring(), {"policy": "protect", "rescue": {"k": None, "host_budget_bytes": 1 << 40}}))  # type: ignore[arg-type]
results = {}
for name, case in CASES.items():
    whole, pieces = train(case), train(case, 7)
    size = np.linalg.norm(bare[name][0])
    results[name] = {
        "healthy_equal": bool((whole[0] == bare[name][0]).all()) and whole[1] == bare[name][1],
        "apart": float(np.linalg.norm(pieces[0] - bare[name][0]) / size),
        "logs_apart": max(
            abs(a - b) / max(abs(a), 1e-3)
            for key in pieces[1]
            for a, b in zip(pieces[1][key], bare[name][1][key], strict=True)
        ),
        "iterations": [bare[name][2], pieces[2]],
        "refusals": pieces[3],
    }
failed = [line for line in told if "failed" in line or "refused" in line]
told.clear()
try:
    train((lambda: dense(in_batch_negatives), {"x": X, "y": Y}), 7)
    error = ""
except torch.OutOfMemoryError as raised:
    error = type(raised).__name__
whole_batch = {"error": error, "refused": [line for line in told if "refused" in line]}
train((normalised, {"x": X, "y": Y}), 7)
disclosed = [line for line in told if "disclosed" in line]


def one_batch(rows: int) -> Any:
    """What is not trained, after one batch of a model with batch normalisation behind a frozen layer."""
    Memory.rows = rows
    keras.utils.set_random_seed(1)
    hidden = [layers.Dense(16, trainable=False), layers.BatchNormalization(), Costly(), layers.Dense(3)]
    model = keras.Sequential([layers.Input((12,)), *hidden])
    model.compile(keras.optimizers.SGD(0.01), ENTROPY(from_logits=True))
    model.fit(X[:51], Y[:51], batch_size=51, verbose=0)
    return [np.asarray(v) for v in model.non_trainable_weights]


def copied() -> int:
    """Clones of tensors in a step in pieces: those of a large frozen layer are among them only if it is copied."""
    Memory.rows, Memory.refusals = 20, 0
    clones = 0
    clone = torch.Tensor.clone

    def counting(tensor: Any, *args: Any, **kwargs: Any) -> Any:
        nonlocal clones
        clones += tensor.numel() == 12 * 977
        return clone(tensor, *args, **kwargs)

    model = keras.Sequential([layers.Input((12,)), layers.Dense(977, trainable=False), layers.Dense(3), Costly()])
    model.compile(keras.optimizers.SGD(0.01), ENTROPY(from_logits=True))
    torch.Tensor.clone = counting  # type: ignore[method-assign]
    try:
        model.fit(X, Y, batch_size=51, verbose=0)
    finally:
        torch.Tensor.clone = clone  # type: ignore[method-assign]
    assert Memory.refusals
    return clones


whole, pieces = one_batch(10**9), one_batch(7)
means_apart = max(float(np.abs(a - b).max()) for a, b in zip(whole[:3], pieces[:3], strict=True))
found = {"means_apart": means_apart, "frozen_copied": copied()}
print(json.dumps({"cases": results, "whole_batch": whole_batch, "disclosed": disclosed, "failed": failed, **found}))
