"""Mistakes in the loop or the model itself, told by what the process says of them; and healthy ones that look alike."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.vocabulary import Event
from tests.detectors.numeric_events import (
    DENSE,
    FALLS,
    FLAT,
    LABELS,
    LOGITS,
    PROBABILITIES,
    RAW,
    REGRESSION,
    SPARSE,
    causes,
    groups,
    health,
    setup,
)

LAYERS = ["dense", "dense_1", "dense_2"]
RELU_SCORES = {
    "last": {**DENSE, "activation": "relu"},
    "loss": {**SPARSE, **LOGITS},
    "output": {**PROBABILITIES, **RAW},
}
ONE_HOT = {**LABELS, "shape": [32, 10], "min": 0, "max": 1, "one_hot": True}
BINARY = {"name": "binary_crossentropy", "family": "binary", "from_logits": False}
DIFFERENCE = {"name": "squared difference", "family": "regression", "from_logits": None, "compared": [32, 32]}
PLATEAU = [1.4, 1.1, 0.9, 0.8] + [0.702 + 0.005 * (-1) ** n for n in range(16)]


def epochs(*losses: float) -> list[Event]:
    return [
        Event("numerics.epoch", 3.0 + n, {"step": 100 * (n + 1), "logs": {"loss": loss}})
        for n, loss in enumerate(losses)
    ]


def dead(share: float) -> list[Any]:
    return [["head", "relu", share, None]]


COLUMN = {"shape": [32, 1], "min": 0.2, "max": 0.9}
GENDER = {"name": "the output gender", "last": {**DENSE, "units": 1, "activation": "linear"}, "loss": BINARY, "targets": {**LABELS, "max": 1},
          "output": {"shape": [32, 1], "min": -0.5, "max": 0.7}}  # fmt: skip
PLAIN = {"name": "SGD", "rate": 0.05, "not_given": []}
SICK: dict[str, tuple[str, str, list[Event]]] = {
    "one sigmoid under a loss for several classes": (
        "output-loss-mismatch",
        "it is 0 whatever the weights are",
        [
            setup(
                last={**DENSE, "units": 1, "activation": "sigmoid"},
                loss={**SPARSE, "family": "categorical"},
                output=COLUMN,
            )
        ],
    ),
    "the outputs of a batch as one vector": (
        "output-loss-mismatch",
        "takes them for the 32 classes of one row",
        [
            setup(
                last={**DENSE, "units": 1, "activation": "linear"},
                loss={**SPARSE, **LOGITS, "family": "categorical", "vector": True},
                output=COLUMN,
            )
        ],
    ),
    "columns of the output sum to 1": (
        "output-loss-mismatch",
        "axis=0",
        [setup(output={**PROBABILITIES, "rows_sum_to_1": False, "columns_sum_to_1": True})],
    ),
    "one of two outputs does not fit its loss": (
        "output-loss-mismatch",
        "of the output gender: the loss binary_crossentropy expects probabilities",
        [setup(loss={}, heads=[{"name": "age", **REGRESSION}, GENDER]), *health(FALLS)],
    ),
    "normalised over one row": (
        "batch-too-small-for-normalization",
        "batch_normalization normalises over a batch of one row",
        [setup(normalised_alone=["batch_normalization"]), *health(FLAT)],
    ),
    "gradients are cleared before the update": (
        "parameters-not-trained",
        "gone at the update",
        [setup(**REGRESSION, optimizer=PLAIN), *health(FLAT, rate=0.05, groups=groups(update=0.0))],
    ),
    "gradients that are clipped to nothing": (
        "learning-rate-too-low",
        "clipped to almost nothing",
        [setup(**REGRESSION, optimizer={**PLAIN, "clips": True}), *health(FLAT, rate=0.05, groups=groups(update=1e-8))],
    ),
    "gradients that nobody clears": (
        "exploding-gradients",
        "gradients are not cleared",
        [setup(), *health(FALLS, carried=[0.0] + [0.9] * 19)],
    ),
    "nothing between the layers, and classes are guessed": (
        "dead-activations",
        "no activation between",
        [setup(linear=LAYERS), *health(FLAT, correct=0.1)],
    ),
    "nothing between the layers, and most of the variance is left": (
        "dead-activations",
        "70% of the targets' variance",
        [setup(linear=LAYERS, **REGRESSION), *health(PLATEAU)],
    ),
    "softmax over the rows": (
        "output-loss-mismatch",
        "dim=0",
        [setup(loss={**SPARSE, **LOGITS, "over_rows": True}, last={}, output={**PROBABILITIES, **RAW})],
    ),
    "cross entropy of one unit": (
        "output-loss-mismatch",
        "softmax over one unit",
        [setup(loss={**SPARSE, **LOGITS}, last={}, output={**PROBABILITIES, **RAW, "shape": [32, 1]})],
    ),
    "classes that relu has silenced": (
        "output-loss-mismatch",
        "20% of them are 0 for every row",
        [setup(**RELU_SCORES), *health(FALLS, units=dead(0.2))],
    ),
    "yes or no for each of ten classes": (
        "output-loss-mismatch",
        "a yes or no of its own",
        [setup(loss=BINARY, targets=ONE_HOT), *health(FALLS)],
    ),
    "a difference of every row with every other": (
        "output-loss-mismatch",
        "every output is compared with every target",
        [setup(**REGRESSION | {"loss": DIFFERENCE})],
    ),
    "targets of thousands, and too few samples": (
        "unscaled-target",
        "99% of the first epoch's loss is left",
        [
            setup(**REGRESSION | {"targets": {"shape": [32, 1], "min": 5e3, "max": 9e3, "mean": 7e3, "std": 1e3}}),
            *health(FLAT[:2]),
            *epochs(5e7, 4.98e7, 4.97e7, 4.96e7),
        ],
    ),
}
HEALTHY: dict[str, list[Event]] = {
    "two outputs that fit their losses": [
        setup(
            loss={},
            heads=[
                {"name": "age", **REGRESSION},
                {**GENDER, "output": COLUMN, "last": {**DENSE, "activation": "sigmoid"}},
            ],
        ),
        *health(FALLS),
    ],
    "normalised over one row, with a way around it": [setup(normalised_alone=["norm"]), *health(FALLS)],
    "large gradients, clipped to a usual norm": [
        setup(**REGRESSION, optimizer={**PLAIN, "clips": True}),
        *health(FLAT, rate=0.05, groups=groups(gradients=(4e5, 5e5), update=0.02)),
    ],
    "a converged model, whose updates are nothing": [
        setup(**REGRESSION, optimizer={**PLAIN, "clips": True}),
        *health(FLAT, rate=0.05, groups=groups(gradients=(1e-7, 1e-7, 1e-7), update=5e-9)),
    ],
    "small weights that move by much of themselves at first, at an ordinary rate": [
        setup(),
        *health([4.16 - 0.002 * n for n in range(6)], groups=groups(weights=0.5, update=0.05)),
    ],
    "one optimizer's are cleared": [setup(), *health(FALLS, carried=[0.0, 0.5] * 10)],
    "linear, and it learns": [setup(linear=LAYERS, **REGRESSION), *health([0.9**n for n in range(20)])],
    "relu, and every class is alive": [setup(**RELU_SCORES), *health(FALLS, units=dead(0.0))],
    "two classes by softmax and a yes or no": [
        setup(
            loss=BINARY,
            targets={**ONE_HOT, "shape": [32, 2]},
            output={**PROBABILITIES, "shape": [32, 2]},
            last={**DENSE, "units": 2},
        ),
        *health(FALLS),
    ],
    "a difference row by row": [setup(**REGRESSION | {"loss": {**DIFFERENCE, "compared": [32, 1]}}), *health(FALLS)],
}


@pytest.mark.parametrize("name", SICK)
def test_a_mistake_is_named(name: str) -> None:
    cause, said, events = SICK[name]
    found = causes(*events)
    assert cause in found, found
    assert any(said in item.text for item in found[cause].evidence), found[cause].evidence


@pytest.mark.parametrize("name", HEALTHY)
def test_what_looks_alike_and_is_meant_is_left_alone(name: str) -> None:
    assert causes(*HEALTHY[name]) == {}
