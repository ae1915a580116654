"""What a run records of a model and of its numbers, for tests of the detectors that read it."""

from __future__ import annotations

from typing import Any

from holdfast import detectors
from holdfast.vocabulary import Event, Finding, Window

DENSE = {"layer": "head", "kind": "Dense", "units": 10, "activation": "softmax"}
SPARSE = {"name": "sparse_categorical_crossentropy", "family": "sparse", "from_logits": False}
LABELS = {
    "shape": [32],
    "dtype": "int64",
    "min": 0,
    "max": 9,
    "mean": 4.5,
    "std": 2.9,
    "distinct": 10,
    "integers": True,
}
PROBABILITIES = {
    "shape": [32, 10], "min": 0.05, "max": 0.2, "mean": 0.1, "std": 0.03, "between_0_and_1": True, "rows_sum_to_1": True,
}  # fmt: skip
INPUT = {
    "name": "x",
    "shape": [32, 20],
    "dtype": "float32",
    "min": -3.0,
    "max": 3.1,
    "mean": 0.0,
    "std": 1.0,
    "non_finite": 0,
}
ADAM = {"name": "Adam", "rate": 1e-3, "parameters": 1000, "not_given": []}
WEIGHTS: dict[str, Any] = {"trainable": 1000, "frozen": 0, "frozen_names": [], "zero": [], "constant": []}
SETUP: dict[str, Any] = {
    "step": 1, "model": "Sequential", "last": DENSE, "loss": SPARSE, "targets": LABELS, "output": PROBABILITIES, "inputs": [INPUT],
    "first_layer": {"kind": "Dense"}, "optimizer": ADAM, "weights": WEIGHTS, "recurrent": False, "normalised": False,
}  # fmt: skip
REGRESSION = {
    "last": {"layer": "head", "kind": "Dense", "units": 1, "activation": "linear"},
    "loss": {"name": "mean_squared_error", "family": "regression", "from_logits": None},
    "targets": {
        "shape": [32, 1],
        "dtype": "float32",
        "min": -2.0,
        "max": 2.0,
        "mean": 0.0,
        "std": 1.0,
        "integers": False,
    },
    "output": {"shape": [32, 1], "min": -1.0, "max": 1.0, "mean": 0.0, "std": 0.4},
}
FALLS = [2.3 * 0.9**n + 0.2 for n in range(20)]
FLAT = [2.3 + 0.01 * (-1) ** n for n in range(20)]


def setup(**changes: Any) -> Event:
    return Event("numerics.setup", 1.0, {**SETUP, **changes})


def groups(
    weights: float = 5.0, gradients: tuple[float | None, ...] = (0.4, 0.5, 0.6), update: float = 5e-3
) -> list[Any]:
    return [[f"layer_{n}", weights, gradient, update, 0.0, 400] for n, gradient in enumerate(gradients)]


def health(losses: list[float], **values: Any) -> list[Event]:
    """A sample every ten steps; a value that is a list of as many changes from one to the next."""
    told = []
    for n, loss in enumerate(losses):
        one = {k: v[n] if isinstance(v, list) and len(v) == len(losses) else v for k, v in values.items()}
        told.append(
            Event(
                "numerics.health", 2.0 + n, {"step": 1 + 10 * n, "loss": loss, "rate": 1e-3, "groups": groups(), **one}
            )
        )
    return told


def causes(*events: Event) -> dict[str, Finding]:
    window = Window(tuple(events), {})
    found = [finding for detector in detectors.NUMERICS for finding in detector.findings(window)]
    return {finding.cause: finding for finding in found if finding.confidence >= 0.5}


def part(name: str, **changes: Any) -> dict[str, Any]:
    return {name: {**SETUP[name], **changes}}


LOGITS = {"from_logits": True, "name": "cross_entropy"}
RAW = {"min": -2.0, "max": 3.0, "between_0_and_1": False, "rows_sum_to_1": False}
PIXELS = [{**INPUT, "min": 0.0, "max": 255.0}]
INCOMES = [{**INPUT, "min": 22.0, "max": 99_917.0}]
PRICES = REGRESSION | {"targets": {"shape": [32, 1], "min": 5e4, "max": 9e5, "mean": 2e5, "std": 1e5}}
NO_GRADIENT_AT_FIRST = [["layer_0", 10.4, 0.0, 0.0, 1.0, 64], *groups()[1:]]
NO_GRADIENT = [
    ["layer_0", 5.0, 0.0, 0.0, 1.0, 400],
    ["layer_1", 0.0, 0.0, 0.0, 1.0, 400],
    ["layer_2", 0.1, 0.1, 1e-3, 0.97, 400],
]
