"""Facts of a training process in, causes out: sick ones are named, and healthy ones that look alike are left alone."""

from __future__ import annotations

import pytest

from holdfast.causes import CAUSES
from holdfast.diagnosis.remedies import remedies_for
from holdfast.vocabulary import Event
from tests.detectors.numeric_events import (
    ADAM,
    DENSE,
    FALLS,
    FLAT,
    INCOMES,
    INPUT,
    LOGITS,
    NO_GRADIENT,
    NO_GRADIENT_AT_FIRST,
    PIXELS,
    PRICES,
    PROBABILITIES,
    RAW,
    REGRESSION,
    SPARSE,
    causes,
    groups,
    health,
    part,
    setup,
)

SICK: dict[str, tuple[str, list[Event]]] = {
    "a rate that falls to next to nothing after each epoch": (
        "learning-rate-too-low",
        [
            setup(),
            *health(
                FLAT,
                epoch=[n // 2 for n in range(20)],
                rate=[0.01 * 1e-3 ** (n // 2) for n in range(20)],
                groups=[groups()] * 2 + [groups(update=1e-9)] * 18,
            ),
        ],
    ),
    "scores within one": (
        "output-loss-mismatch",
        [
            setup(
                loss={**SPARSE, **LOGITS},
                last={**DENSE, "activation": "tanh"},
                output={**PROBABILITIES, **RAW, "min": -0.9, "max": 0.8},
            )
        ],
    ),
    "pixels that were divided by 255 twice": (
        "unscaled-input",
        [setup(inputs=[{**INPUT, "min": 0.0, "max": 0.0039}]), *health(FLAT)],
    ),
    "an infinity that half precision hides": (
        "mixed-precision-overflow",
        [setup(half="float16", overflow="rsqrt"), *health(FLAT)],
    ),
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
        [setup(**part("weights", zero=["layer_0.weight", "layer_1.weight", "layer_2.weight"])), *health(FLAT)],
    ),
    "zeros in two layers that follow each other": (
        "bad-initialization",
        [setup(**part("weights", zero=["layer_1.weight", "layer_2.weight"])), *health(FLAT, groups=NO_GRADIENT)],
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
    "a schedule that undoes what was learned": (
        "learning-rate-too-high",
        [setup(), *health([*FALLS[:8], 3.1, *[2.33] * 11], rate=[0.05] * 8 + [5.0] * 12)],
    ),
    "the number of the class for each of its units": (
        "output-loss-mismatch",
        [
            setup(
                **REGRESSION
                | {
                    "output": {"shape": [32, 5]},
                    "targets": {"shape": [32, 5], "min": 0, "max": 4, "mean": 2, "distinct": 5, "integers": True, "repeated": True},
                }
            ),
            *health(FALLS),
        ],
    ),
    "a frozen backbone that was trained on nothing": (
        "parameters-not-trained",
        [
            setup(**part("weights", trainable=100, frozen=9000, frozen_names=["backbone.0.weight"])),
            *health([2.31 + 0.01 * (-1) ** n for n in range(20)], correct=0.1, groups=groups(update=0.02)[-1:]),
        ],
    ),
    "a rate of 0.1 that learned something, blew up and guesses since": (
        "learning-rate-too-high",
        [
            setup(**part("optimizer", rate=0.1)),
            *health(
                [2.3, 8.1, 2.4, 10.0, 1.9, 1.6, 1.5, 1.8, 2.0, 69.0, 2.31, 2.30], rate=0.1, groups=groups(update=0.1),
                step=[1, 2, 3, 5, 8, 13, 21, 34, 55, 144, 233, 377], correct=[0.1] * 5 + [0.5] * 5 + [0.1, 0.1],
            ),
        ],
    ),
    "a rate of 0.9, in steps too slow to be sampled": (
        "learning-rate-too-high",
        [
            setup(**part("optimizer", rate=0.9)),
            *health([2.3, 15.0, 61.0, 34.0, 32.0, 16.0, 10.0], rate=0.9, step=[1, 2, 3, 5, 8, 13, 21], groups=groups(update=0.3)),
            *[Event("numerics.epoch", 30.0 + n, {"epoch": n, "step": 50 * (n + 1), "logs": {"loss": 3.0 + n}}) for n in range(4)],
        ],
    ),
    "the same value everywhere, which is learned a little from": (
        "bad-initialization",
        [setup(**part("weights", constant=["layer_0", "layer_1", "layer_2"])), *health(FALLS)],
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
    "a rate that is lowered again and again where the loss stands still": [
        setup(),
        *health(
            FLAT,
            epoch=[n // 2 for n in range(20)],
            rate=[0.01 * 1e-3 ** max(0, n // 2 - 1) for n in range(20)],
            groups=[groups()] * 4 + [groups(update=1e-9)] * 16,
        ),
    ],
    "scores that were made larger after tanh": [
        setup(
            loss={**SPARSE, **LOGITS}, last={**DENSE, "activation": None}, output={**PROBABILITIES, **RAW, "min": -5.0}
        ),
        *health(FALLS),
    ],
    "small features that are learned from": [setup(inputs=[{**INPUT, "min": 0.0, "max": 0.004}]), *health(FALLS)],
    "small features, normalised in the model": [
        setup(inputs=[{**INPUT, "min": 0.0, "max": 0.004}], normalised=True),
        *health(FLAT),
    ],
    "an infinity in half precision that does no harm": [
        setup(half="float16", overflow="rsqrt"),
        *health(FALLS),
    ],
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
    "the second of two tables begins at zero, and learns slowly at first": [
        setup(**part("weights", zero=["layer_1.weight"])),
        *health(FLAT, groups=groups(gradients=(0.4, 0.5), update=0.4)),
    ][:15],
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
    "a restart of the rate, from which it comes back": [
        setup(),
        *health([*FALLS[:10], 2.4, *FALLS[9:18]], rate=[*[0.1 * 0.6**n for n in range(10)], *[0.1] * 10]),
    ],
    "a rate that is raised once before anything was learned": [
        setup(),
        *health([2.3, 2.29, 2.31, *FALLS[:17]], rate=[1e-4] * 3 + [1e-2] * 17),
    ],
    "ratings of several things at once": [
        setup(
            **REGRESSION
            | {
                "output": {"shape": [32, 5]},
                "targets": {
                    "shape": [32, 5],
                    "min": 0,
                    "max": 4,
                    "mean": 2,
                    "distinct": 5,
                    "integers": True,
                    "repeated": False,
                },
            }
        ),
        *health(FALLS),
    ],
    "few weights beside a frozen base that already knows much": [
        setup(**part("weights", trainable=100, frozen=9000, frozen_names=["base.0.weight"])),
        *health([1.71 + 0.01 * (-1) ** n for n in range(20)], groups=groups(update=0.02)[-1:]),
    ],
    "adapters among frozen layers, that have only begun to learn": [
        setup(**part("weights", trainable=100, frozen=9000, frozen_names=["base.0.weight"])),
        *health([2.31 + 0.01 * (-1) ** n for n in range(20)], correct=0.1, groups=groups(update=0.02)),
    ],
    "a head that begins to learn at last": [
        setup(**part("weights", trainable=100, frozen=9000, frozen_names=["base.0.weight"])),
        *health([*[2.31] * 18, 2.2, 1.9], groups=groups(update=0.02)[-1:]),
    ],
    "tiny losses": [setup(**REGRESSION), *health([1e-12 * 0.9**n for n in range(20)])],
    "spiky": [setup(), *health([50.0 if n % 7 == 6 else loss for n, loss in enumerate(FALLS)])],
}


@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_training_is_left_alone(name: str) -> None:
    assert not causes(*HEALTHY[name])
