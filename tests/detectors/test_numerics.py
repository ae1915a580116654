"""Facts of a training process in, causes out: sick ones are named, and healthy ones that look alike are left alone."""

from __future__ import annotations

import math
from typing import Any

import pytest

from holdfast import detectors
from holdfast.causes import CAUSES
from holdfast.diagnosis.remedies import remedies_for
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
SICK: dict[str, tuple[str, list[Event]]] = {
    "softmax over one unit": ("output-loss-mismatch", [setup(output={**PROBABILITIES, "shape": [32, 1]})]),
    "softmax, then again in the loss": ("output-loss-mismatch", [setup(loss={**SPARSE, **LOGITS})]),
    "logits into a loss of probabilities": (
        "output-loss-mismatch",
        [setup(last={**DENSE, "activation": "linear"}, output={**PROBABILITIES, **RAW})],
    ),
    "logits into nll": (
        "output-loss-mismatch",
        [setup(loss={"name": "nll_loss", "family": "nll"}, last={}, output={**PROBABILITIES, **RAW})],
    ),
    "targets of another shape": (
        "output-loss-mismatch",
        [
            setup(**REGRESSION | {"loss": {"name": "mse_loss", "family": "regression"}, "targets": {"shape": [32], "min": 0, "max": 1}})
        ],
    ),
    "sigmoid for a price": (
        "output-loss-mismatch",
        [setup(**REGRESSION | {"last": {"activation": "sigmoid"}, "targets": {"shape": [32, 1], "min": 3, "max": 50, "mean": 20}})],
    ),
    "labels of 1 and 2": (
        "output-loss-mismatch",
        [
            setup(
                loss={"name": "binary_crossentropy", "family": "binary", "from_logits": False},
                last={"activation": "sigmoid"},
                targets={"shape": [32, 1], "min": 1, "max": 2},
                output={"shape": [32, 1], "min": 0.2, "max": 0.8},
            )
        ],
    ),
    "images that are all zero": (
        "bad-input-values",
        [setup(inputs=[{**INPUT, "shape": [32, 3, 8, 8], "min": 0, "max": 0, "std": 0}]), *health(FLAT)],
    ),
    "a row that is repeated": (
        "bad-input-values",
        [setup(inputs=[{**INPUT, "columns": {"count": 20, "constant": 20}}]), *health(FLAT)],
    ),
    "pixels as they are": ("unscaled-input", [setup(inputs=PIXELS), *health([120.0, *FALLS[1:]])]),
    "prices in dollars": (
        "unscaled-target",
        [
            setup(**PRICES),
            *health([5e10 - 1e6 * n for n in range(20)], scale=3.0),
        ],
    ),
    "zeros everywhere": (
        "bad-initialization",
        [setup(**part("weights", zero=["layer_0", "layer_1"])), *health(FLAT)],
    ),
    "nothing is trainable": ("parameters-not-trained", [setup(**part("weights", trainable=0, frozen=1000))]),
    "only the head was given to the optimizer": (
        "parameters-not-trained",
        [setup(**part("optimizer", not_given=["layer_0.weight"])), *health(FLAT)],
    ),
    "the tape was not asked for the encoder": (
        "parameters-not-trained",
        [setup(), *health(FLAT, left_out=["encoder/kernel"])],
    ),
    "layers in a plain list": (
        "parameters-not-trained",
        [setup(), *health(FALLS, unregistered=["hidden[0].weight"])],
    ),
    "incomes into tanh": (
        "unscaled-input",
        [setup(inputs=INCOMES), *health(FALLS, groups=NO_GRADIENT_AT_FIRST, units=[["layer_0", "tanh", 0.7, 1.0]])],
    ),
    "prices whose errors threw the weights away": (
        "unscaled-target",
        [
            setup(**PRICES, optimizer={**ADAM, "name": "SGD", "rate": 0.01}),
            *health([1e11, *[1e18 * 0.8**n for n in range(19)]], scale=1e9, groups=groups(update=5e4)),
        ],
    ),
    "a rate of 0.5 for a transformer": (
        "learning-rate-too-high",
        [setup(**part("optimizer", rate=0.5)), *health([2.3, 9.0, 12.0, 8.0, *[2.4] * 16], rate=0.5)],
    ),
    "features were detached": (
        "parameters-not-trained",
        [setup(), *health(FALLS, groups=groups(gradients=(None, None, 0.5)))],
    ),
    "a rate of 1": ("learning-rate-too-high", [setup(), *health(FLAT, rate=1.0, groups=groups(update=2.0))]),
    "a rate of 1e-8": (
        "learning-rate-too-low",
        [setup(), *health([2.3 - 1e-6 * n for n in range(20)], rate=1e-8, groups=groups(update=1e-7))],
    ),
    "ten sigmoids": ("vanishing-gradients", [setup(), *health(FLAT, groups=groups(gradients=(1e-7, 1e-3, 0.5)))]),
    "dead relu": ("dead-activations", [setup(), *health(FLAT, units=[["layer_1", "relu", 0.98, 0.0]])]),
    "the head was put there after the optimizer was made": (
        "parameters-not-trained",
        [*health(FLAT, groups=groups(gradients=(None, None), update=0.0))],
    ),
    "the same loss in each epoch": (
        "parameters-not-trained",
        [Event("numerics.epoch", 5.0 + n, {"epoch": n, "step": 50 * (n + 1), "logs": {"loss": 1.11557}}) for n in range(4)],
    ),
    "a column against a row": (
        "output-loss-mismatch",
        [
            setup(
                **REGRESSION
                | {"loss": {"name": "mse_loss", "family": "regression"}, "output": {"shape": [32, 32]}, "targets": {"shape": [32, 32]}}
            )
        ],
    ),
    "features far apart": (
        "unscaled-input",
        [setup(**REGRESSION, inputs=PIXELS), *health([1e9 * 0.8**n for n in range(20)])],
    ),
    "sorted by label": (
        "data-not-shuffled",
        [setup(), *health(FALLS, classes=[[1, 1.0, 32, n // 2] for n in range(20)])],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SICK)
def test_a_sick_training_is_named(name: str) -> None:
    cause, events = SICK[name]
    found = causes(*events)
    assert cause in found, found
    assert found[cause].evidence[0].text


@pytest.mark.parametrize("framework", ["tensorflow", "torch"])
@pytest.mark.parametrize("name", [name for name, (cause, _) in SICK.items() if cause == "output-loss-mismatch"])
def test_what_does_not_fit_its_loss_is_mended_by_a_remedy_for_that(name: str, framework: str) -> None:
    found = causes(*SICK[name][1])["output-loss-mismatch"]
    kind = found.details["mismatch"]
    of_kind = [one for one in CAUSES[found.cause].recipes if one.when == kind and one.framework == framework]
    assert len(remedies_for(found, framework)) == len(of_kind), kind
    assert bool(of_kind) == ((kind, framework) != ("logits for logarithms", "tensorflow"))  # a loss of PyTorch's alone


HEALTHY: dict[str, list[Event]] = {
    "columns that are empty": [setup(inputs=[{**INPUT, "columns": {"count": 20, "constant": 12}}]), *health(FALLS)],
    "a constant beside the data": [
        setup(inputs=[INPUT, {**INPUT, "name": "scale", "min": 1, "max": 1, "std": 0}]),
        *health(FALLS),
    ],
    "learns": [setup(), *health(FALLS)],
    "features of pictures that are compared": [
        setup(
            **REGRESSION
            | {
                "loss": {"name": "squared difference", "family": "regression", "compared": [20, 8, 5, 5]},
                "output": {"shape": [20, 1, 12, 12]},
            }
        ),
        *health(FALLS),
    ],
    "hard task, flat": [setup(), *health(FLAT)],
    "logits, as the loss expects": [
        setup(loss={**SPARSE, **LOGITS}, last={**DENSE, "activation": "linear"}, output={**PROBABILITIES, **RAW}),
        *health(FALLS),
    ],
    "pixels that do no harm": [setup(inputs=PIXELS), *health(FALLS)],
    "pixels, normalised by the model": [
        setup(inputs=PIXELS, first_layer={"kind": "Rescaling"}),
        *health([90.0, *FLAT[1:]]),
    ],
    "large targets that are reached": [
        setup(**PRICES),
        *health([5e10 * 0.7**n for n in range(20)], scale=2e5),
    ],
    "one layer that begins at zero": [setup(**part("weights", zero=["layer_2"])), *health(FALLS)],
    "a frozen base": [setup(**part("weights", frozen=9000, frozen_names=["layer_0.weight"])), *health(FALLS)],
    "a head that is not used": [setup(), *health(FALLS, groups=groups(gradients=(0.5, 0.4, None)))],
    "fine-tuning": [setup(), *health([0.3 - 1e-3 * n for n in range(20)], rate=1e-5, groups=groups(update=1e-3))],
    "warm-up": [
        setup(),
        *health(FLAT, rate=[1e-7 * (n + 1) for n in range(20)], groups=groups(update=1e-7)),
    ],
    "one class, mostly": [setup(), *health(FALLS, classes=[1, 1.0, 32, 0])],
    "real and fake in turn": [setup(), *health(FALLS, classes=[[1, 1.0, 32, n % 2] for n in range(20)])],
    "few active units": [setup(), *health(FALLS, units=[["layer_1", "relu", 0.95, 0.0]])],
    "torch nll": [
        setup(loss={"name": "nll_loss", "family": "nll"}, last={}, output={**PROBABILITIES, "min": -3.0, "max": -1.0}),
        *health(FALLS),
    ],
    "a metric that is undefined by design": [
        setup(),
        *health(FALLS),
        Event("numerics.non_finite", 3.0, {"step": 1, "seen_in": "metric", "origin": "unknown"}),
    ],
    "values of the actions taken": [
        setup(**REGRESSION | {"output": {"shape": [32, 2]}, "targets": {"shape": [32], "min": 0, "max": 1}}),
        *health(FALLS),
    ],
    "a head on features that are good enough": [
        setup(**part("optimizer", not_given=["layer_0.weight"])),
        *health(FALLS, left_out=["layer_0.weight"]),
    ],
    "counts of words, most of them zero": [
        setup(inputs=INCOMES),
        *health(FALLS, groups=[["layer_0", 5.0, 0.3, 0.005, 0.995, 4000]], units=[["layer_0", "relu", 0.1, 0.0]]),
    ],
    "units that saturate behind ordinary input": [
        setup(),
        *health(FALLS, groups=NO_GRADIENT_AT_FIRST, units=[["layer_0", "tanh", 0.7, 1.0]]),
    ],
    "prices that are learned after the first errors": [
        setup(**PRICES, optimizer={**ADAM, "name": "SGD", "rate": 0.01}),
        *health([1e11, 1e13, *[1e11 * 0.5**n for n in range(18)]], scale=2e5, groups=groups(update=50.0)),
    ],
    "a high rate that shakes off its start": [
        setup(**part("optimizer", rate=0.5)),
        *health([2.3, 9.0, 12.0, 8.0, *[2.2 * 0.8**n for n in range(16)]], rate=0.5),
    ],
    "tiny losses": [setup(**REGRESSION), *health([1e-12 * 0.9**n for n in range(20)])],
    "spiky": [setup(), *health([50.0 if n % 7 == 6 else loss for n, loss in enumerate(FALLS)])],
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_training_is_left_alone(name: str) -> None:
    assert not causes(*HEALTHY[name])


def incident(**data: Any) -> Event:
    return Event(
        "numerics.non_finite", 9.0, {"step": 41, "seen_at": 41, "seen_in": "loss", "origin": "unknown", **data}
    )


STEADY = {
    "losses": [[n, 2.0 - 0.01 * n] for n in range(10)],
    "gradient_norms": [[n, 0.5] for n in range(10)],
    "rate": 1e-3,
}
GROWS = {
    "losses": [[n, 2.0 * 10**n] for n in range(10)],
    "gradient_norms": [[n, 0.5 * 10**n] for n in range(10)],
    "rate": 1e-3,
}
INCIDENTS: dict[str, tuple[str, str, list[Event]]] = {
    "rows of the input": (
        "bad-input-values",
        "rows 3, 17 of the batch; 4003, 4017 of the data set",
        [setup(), incident(origin="input", input={"rows": [3, 17], "row_count": 2, "indices": [4003, 4017], "what": "NaN"})],
    ),
    "log of zero": (
        "invalid-math",
        "log (log of 0.0), at train.py:31: loss = -torch.log(p).mean()",
        [
            setup(),
            incident(
                origin="loss", before=STEADY, values="log of 0.0",
                place={"op": "log", "line": "train.py:31", "code": "loss = -torch.log(p).mean()"},
            ),
        ],
    ),
    "root of zero, backwards": (
        "invalid-math",
        "SqrtBackward0",
        [setup(), incident(origin="backward", seen_in="gradient", before=STEADY, place={"op": "SqrtBackward0"})],
    ),
    "a rate that is absurd": (
        "learning-rate-too-high",
        "learning rate: 10",
        [setup(), incident(origin="forward", before={**GROWS, "rate": 10.0}, place={"op": "matmul", "layer": "head"})],
    ),
    "a rate that jumped": (
        "learning-rate-too-high",
        "it was 0.001 before",
        [setup(), incident(origin="forward", before={**GROWS, "rate": 0.05, "rate_was": 1e-3}, place={"op": "matmul"})],
    ),
    "a recurrent model that explodes": (
        "exploding-gradients",
        "norm of the gradient before",
        [setup(recurrent=True), incident(origin="backward", seen_in="gradient", before=GROWS, place={"op": "mm"})],
    ),
    "half precision": (
        "mixed-precision-overflow",
        "float16",
        [setup(), incident(origin="forward", half="float16", before=STEADY, place={"op": "matmul", "dtype": "float16"})],
    ),
    "a sensor that broke": (
        "bad-input-values",
        "4.7e+28 squared",
        [setup(), incident(origin="loss", before={**STEADY, "largest_weight": 0.4}, values="4.7e+28 squared", place={"op": "Square"})],
    ),
    "a code for broken, in three rows": (
        "bad-input-values",
        "x holds 1e+30 in 3 rows (rows 8, 9, 10 of the batch; 1000, 1001, 1002 of the data set), column 5",
        [
            setup(),
            incident(
                origin="loss", before=STEADY, values="4.7e+18 squared", place={"op": "Square"},
                input={"name": "x", "what": "1e+30", "rows": [8, 9, 10], "row_count": 3, "columns": [5], "indices": [1000, 1001, 1002]},
            ),
        ],
    ),
    "statistics that took in a batch which the script left out": (
        "bad-input-values",
        "running statistics of a normalisation became NaN or infinite in step 41",
        [setup(), incident(origin="input", seen_in="statistics", input={"rows": [9], "row_count": 1, "what": "NaN"})],
    ),
    "attention without anything to attend to": (
        "invalid-math",
        "softmax",
        [setup(), incident(origin="forward", before=STEADY, place={"op": "softmax", "layer": "attention"})],
    ),
    "inputs of a million": (
        "unscaled-input",
        "the input reaches 2,000,000",
        [setup(inputs=[{**INPUT, "max": 2e6}]), incident(origin="forward", before=GROWS, place={"op": "matmul"})],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", INCIDENTS)
def test_what_made_a_value_that_is_not_finite(name: str) -> None:
    cause, said, events = INCIDENTS[name]
    found = causes(*events)
    assert cause in found, found
    assert any(said in item.text for item in found[cause].evidence), found[cause].evidence
    assert len([f for f in found.values() if f.subject]) == 1


def test_not_a_number_comes_as_a_word() -> None:
    found = causes(setup(), *health(["nan"] * 20), incident(before={"losses": [[1, "inf"], [2, math.inf]]}))  # type: ignore[list-item]
    assert list(found) == ["invalid-math"]
