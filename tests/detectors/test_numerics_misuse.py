"""Mistakes in the loop or the model itself, told by what the process says of them; and healthy ones that look alike."""

from __future__ import annotations

import math
from typing import Any

import pytest

from holdfast.vocabulary import Event
from tests.detectors.numeric_events import (
    ADAM,
    DENSE,
    FALLS,
    FLAT,
    LABELS,
    LOGITS,
    PROBABILITIES,
    RAW,
    REGRESSION,
    SPARSE,
    WEIGHTS,
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


def held_out(*counts: tuple[int, int, int]) -> Event:
    return Event("numerics.held_out", 4.0, {"step": 40, "counts": [list(row) for row in counts]})


COLUMN = {"shape": [32, 1], "min": 0.2, "max": 0.9}
GENDER = {"name": "the output gender", "last": {**DENSE, "units": 1, "activation": "linear"}, "loss": BINARY, "targets": {**LABELS, "max": 1},
          "output": {"shape": [32, 1], "min": -0.5, "max": 0.7}}  # fmt: skip
PLAIN = {"name": "SGD", "rate": 0.05, "not_given": []}
DIVERGENCE = {"name": "kl_divergence", "family": "divergence", "from_logits": False}
SEVERAL = {"shape": [32, 10], "dtype": "float32", "min": 0.0, "max": 1.0, "mean": 0.3, "std": 0.4, "several": True}
YES_BY_RELU: dict[str, Any] = {
    "last": {**DENSE, "units": 1, "activation": "relu"},
    "loss": {**BINARY, "from_logits": True},
    "targets": {**LABELS, "shape": [32, 1], "max": 1, "distinct": 2},
    "output": {"shape": [32, 1], "min": 0.0, "max": 3.0},
}
Z_SCORES = {"shape": [32, 10], "dtype": "float32", "min": -3.0, "max": 3.0, "mean": 0.0, "std": 1.0, "integers": False}
SCHEDULED = {**ADAM, "schedule": "ExponentialDecay"}
WIDE = {**WEIGHTS, "largest": {"name": "a/kernel", "std": 8.0, "shape": [12, 64]}}
SICK: dict[str, tuple[str, str, list[Event]]] = {
    "the last rows of a sorted set are held out": (
        "data-not-shuffled",
        "of 300 rows that are held out 300 are of class 2, of 700 that are trained on 40",
        [setup(), *health(FALLS), held_out((0, 330, 0), (1, 330, 0), (2, 40, 300))],
    ),
    "the last class of two": (
        "data-not-shuffled",
        "the last rows",
        [setup(), *health(FALLS), held_out((0, 500, 0), (1, 200, 300))],
    ),
    "divergence of logits": (
        "output-loss-mismatch",
        "kl_divergence expects probabilities, and the last layer ends in linear",
        [setup(loss=DIVERGENCE, last={**DENSE, "activation": "linear"}, output={**PROBABILITIES, **RAW})],
    ),
    "divergence of probabilities where logarithms are wanted": (
        "output-loss-mismatch",
        "expects logarithms of probabilities (0 or less), and gets up to 0.2",
        [setup(loss={"name": "kl_div", "family": "kl"}, last={"activation": "softmax"})],
    ),
    "alignments of logits": (
        "output-loss-mismatch",
        "ctc_loss expects logarithms",
        [setup(loss={"name": "ctc_loss", "family": "ctc"}, output={**PROBABILITIES, **RAW})],
    ),
    "several classes at once under a loss for one": (
        "output-loss-mismatch",
        "rows have several classes at once",
        [setup(loss={**SPARSE, "name": "categorical_crossentropy", "family": "categorical"}, targets=SEVERAL)],
    ),
    "a rate at which what was learned falls apart again": (
        "learning-rate-too-high",
        "which was 1.1 for a while, is 3 in the end, and a model that knows nothing has 2.3",
        [
            setup(optimizer={**ADAM, "rate": 0.5}),
            *health([2.4, 60.0, 20.0, 5.0, 2.0, 1.5, 1.1, 1.2, 2.0, 3.0, 2.5], rate=0.5),
            *epochs(9.0, 1.4, 1.1, 1.6, 2.6, 3.0),
        ],
    ),
    "the encoder is as random as it began, and the head learns from that": (
        "parameters-not-trained",
        "still work with what is random",
        [setup(), *health(FALLS, left_out=["encoder.0.weight"], never_trained=True, correct=0.6)],
    ),
    "z-scores to be given by a sigmoid": (
        "output-loss-mismatch",
        "expects labels from 0 to 1, and the first batch has -3 to 3",
        [setup(loss=BINARY, last={**DENSE, "activation": "sigmoid"}, targets=Z_SCORES)],
    ),
    "a table that holds NaN before the first step": (
        "bad-initialization",
        "the weights were not finite before",
        [
            Event(
                "numerics.non_finite",
                1.0,
                {"step": 0, "seen_at": 1, "seen_in": "loss", "origin": "weights", "before": {}},
            )
        ],
    ),
    "a yes or no that is never no": (
        "output-loss-mismatch",
        "the answer is never no",
        [setup(**YES_BY_RELU), *health(FALLS)],
    ),
    "a schedule that has run out at once": (
        "learning-rate-too-low",
        "it was 0.001, and 1e-07 by step 31 of 191",
        [
            setup(optimizer=SCHEDULED),
            *health(FLAT, rate=[1e-3] * 3 + [1e-7] * 17, groups=[groups()] * 3 + [groups(update=1e-9)] * 17),
        ],
    ),
    "a layer that was replaced after the optimizer was made": (
        "parameters-not-trained",
        "no model has any more",
        [
            setup(optimizer={**PLAIN, "not_given": ["fc.weight", "fc.bias"]}),
            *health(FALLS, groups=[*groups(), ["parameter 0", 3.0, None, 0.0, None, 400]]),
        ],
    ),
    "units that are saturated throughout, and something is learned behind them": (
        "bad-initialization",
        "95% of a layer's units are saturated",
        [setup(weights=WIDE), *health(FALLS, units=[["a", "tanh", 0.0, 0.95], ["b", "tanh", 0.0, 0.2]])],
    ),
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
    "the same, of a model whose output is not known": (
        "output-loss-mismatch",
        "outputs (32, one a row) minus the targets give (32, 32)",
        [setup(**REGRESSION | {"loss": DIFFERENCE, "output": {}, "targets": {}})],
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
    "held out at random": [setup(), *health(FALLS), held_out((0, 400, 105), (1, 410, 95), (2, 390, 100))],
    "a rare class that a few rows do not have": [setup(), *health(FALLS), held_out((0, 980, 100), (1, 20, 0))],
    "quantities that are whole numbers, the latest held out": [
        setup(**REGRESSION),
        *health(FALLS),
        held_out((0, 400, 0), (1, 0, 200)),
    ],
    "divergence of probabilities": [setup(loss=DIVERGENCE), *health(FALLS)],
    "logarithms whose origin is not known": [
        setup(loss={"name": "kl_div", "family": "kl"}, last={"activation": None}, output=PROBABILITIES),
        *health(FALLS),
    ],
    "what a person bought, given and to be given": [
        setup(loss={**SPARSE, "family": "categorical"}, targets=SEVERAL, inputs=[{"name": "x", **SEVERAL}]),
        *health(FALLS),
    ],
    "counts under a loss of the script's own": [
        setup(
            loss={"name": "cross_entropy", "family": "categorical", "from_logits": True},
            targets=SEVERAL,
            output={**PROBABILITIES, **RAW},
            last={**DENSE, "activation": "linear"},
        ),
        *health(FALLS),
    ],
    "scores that are cut off far below": [
        setup(
            last=YES_BY_RELU["last"],
            loss=YES_BY_RELU["loss"],
            targets=YES_BY_RELU["targets"],
            output={"shape": [32, 1], "min": -20.0, "max": 3.0},
        ),
        *health(FALLS),
    ],
    "a rate that was lowered where the loss stood still": [
        setup(),
        *health(FLAT, rate=[1e-3] * 3 + [1e-7] * 17, groups=[groups()] * 3 + [groups(update=1e-9)] * 17),
    ],
    "a rate that falls at the end": [
        setup(optimizer=SCHEDULED),
        *health(FLAT, rate=[1e-3 * 0.5 * (1 + math.cos(math.pi * n / 19)) for n in range(20)]),
    ],
    "a rate that fell after all was learned": [
        setup(optimizer=SCHEDULED),
        *health([2.3, 1.0, 0.3] + [0.1] * 17, rate=[1e-3] * 3 + [1e-7] * 17, groups=groups(update=1e-9)),
    ],
    "a rate that goes down and up again": [
        setup(optimizer=SCHEDULED),
        *health(FLAT, rate=[1e-3] * 3 + [1e-7] * 8 + [1e-3] * 9, groups=groups(update=1e-9)),
    ],
    "an optimizer that has another model's weights as well": [
        setup(),
        *health(FALLS, groups=[*groups(), ["parameter 0", 3.0, None, 0.0, None, 400]]),
    ],
    "a head that another step's optimizer has": [
        setup(optimizer={**PLAIN, "not_given": ["fc.weight"]}),
        *health(FALLS),
    ],
    "a head on features that were trained": [
        setup(),
        *health(FALLS, left_out=["encoder.0.weight"], never_trained=False),
    ],
    "a head on features that are random and good enough": [
        setup(),
        *health(FALLS, left_out=["encoder.0.weight"], never_trained=True, correct=0.9),
    ],
    "a teacher that no gradient is asked for, before its student": [
        setup(optimizer={**ADAM, "not_given": ["distiller/teacher/dense/kernel", "distiller/teacher/dense/bias"]}),
        *health(FALLS, groups=[["teacher", 5.0, None, 0.0, None, 400], *groups()]),
    ],
    "a high rate that learns all the same": [
        setup(optimizer={**ADAM, "rate": 0.1}),
        *health([2.4, 3.0, *FALLS[2:]], rate=0.1),
        *epochs(2.0, 1.0, 0.5, 0.3, 0.25),
    ],
    "large weights, and units that come back": [
        setup(weights=WIDE),
        *health(FALLS, units=[[["a", "tanh", 0.0, 0.95 - 0.04 * n]] for n in range(20)]),
    ],
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
    "pairs of features, of a model whose output is not known": [
        setup(**REGRESSION | {"loss": DIFFERENCE, "output": {}, "targets": {}, "last": {**DENSE, "units": 8}}),
        *health(FALLS),
    ],
    "a difference row by row": [setup(**REGRESSION | {"loss": {**DIFFERENCE, "compared": [32, 1]}}), *health(FALLS)],
}


def test_labels_that_are_no_classes_get_the_remedy_for_quantities() -> None:
    found = causes(setup(loss=BINARY, last={**DENSE, "activation": "sigmoid"}, targets=Z_SCORES))
    assert found["output-loss-mismatch"].details["mismatch"] == "quantities as shares"
    found = causes(setup(loss=BINARY, last={**DENSE, "activation": "sigmoid"}, targets={**LABELS, "max": 2}))
    assert found["output-loss-mismatch"].details["mismatch"] == "label range"


@pytest.mark.parametrize("name", SICK)
def test_a_mistake_is_named(name: str) -> None:
    cause, said, events = SICK[name]
    found = causes(*events)
    assert cause in found, found
    assert any(said in item.text for item in found[cause].evidence), found[cause].evidence


@pytest.mark.parametrize("name", HEALTHY)
def test_what_looks_alike_and_is_meant_is_left_alone(name: str) -> None:
    assert causes(*HEALTHY[name]) == {}
