"""Losses that stay where they are: trainings that do not move, and those that have nothing to find."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.vocabulary import Event
from tests.detectors.numeric_events import ADAM, FLAT, REGRESSION, causes, groups, health, setup
from tests.detectors.test_numerics_misuse import epochs

PLAIN = {"name": "SGD", "rate": 0.01, "not_given": []}
TRUTH_TABLE: dict[str, Any] = REGRESSION | {
    "targets": {"shape": [4, 1], "min": 0.0, "max": 1.0, "mean": 0.5, "std": 0.5, "integers": True, "distinct": 2}
}
QUARTER = [0.25 + 1e-4 * (-1) ** n for n in range(20)]
FADED = groups(gradients=(1e-3, 0.1, 1.0))
SICK: dict[str, tuple[str, str, list[Event]]] = {
    "a small model that plain descent hardly moves": (
        "learning-rate-too-low",
        "in 500 steps by 4.0% at most, and the loss is still that of a guess",
        [
            setup(**TRUTH_TABLE, optimizer=PLAIN),
            *health(QUARTER, rate=0.01, groups=groups(update=4e-4)),
            *epochs(*[0.25] * 5),
        ],
    ),
    "an optimizer that has nothing but the old head": (
        "parameters-not-trained",
        "fc.weight, and no optimizer has them (it has weights that no model has any more)",
        [
            *health(
                FLAT,
                left_out=["fc.weight"],
                correct=[0.0] * 10 + [0.3] * 10,
                groups=[["parameter 0", 3.0, None, 0.0, None, 400]],
            )
        ],
    ),
    "outputs that are the same for every row, from the first step on": (
        "vanishing-gradients",
        "the gradient of layer_0 is 1e-03 of that of layer_2",
        [setup(), *health(FLAT, groups=FADED, spread=1e-5, scale=0.1)],
    ),
}
HEALTHY: dict[str, list[Event]] = {
    "a small model that is done": [
        setup(**TRUTH_TABLE, optimizer=PLAIN),
        *health([0.001] * 20, rate=0.01, groups=groups(update=4e-4)),
        *epochs(*[0.001] * 5),
    ],
    "noise, and updates of an ordinary size": [
        setup(**TRUTH_TABLE, optimizer=PLAIN),
        *health(QUARTER, rate=0.01, groups=groups(update=5e-3)),
        *epochs(*[0.25] * 5),
    ],
    "fine-tuning by an optimizer that scales its updates": [
        setup(**TRUTH_TABLE, optimizer={**ADAM, "rate": 1e-5}),
        *health(QUARTER, rate=1e-5, groups=groups(update=4e-4)),
        *epochs(*[0.25] * 5),
    ],
    "too few steps to say": [
        setup(**TRUTH_TABLE, optimizer=PLAIN),
        *health(QUARTER, rate=0.01, groups=groups(update=4e-4)),
    ],
    "noise, and outputs that differ": [setup(), *health(FLAT, groups=FADED, spread=0.01, scale=0.1)],
    "outputs that begin alike and come apart": [
        setup(),
        *health(FLAT, groups=FADED, spread=[1e-6 * 2**n for n in range(20)], scale=0.1),
    ],
}


@pytest.mark.parametrize("name", SICK)
def test_a_training_that_stands_still_is_named(name: str) -> None:
    cause, said, events = SICK[name]
    found = causes(*events)
    assert cause in found, found
    assert any(said in item.text for item in found[cause].evidence), found[cause].evidence


@pytest.mark.parametrize("name", HEALTHY)
def test_one_that_has_nothing_to_find_or_is_done_is_left_alone(name: str) -> None:
    assert causes(*HEALTHY[name]) == {}
