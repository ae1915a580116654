"""What made a value that is not finite, by what was recorded of it; and the remedy for that."""

from __future__ import annotations

import math
from typing import Any

import pytest

from holdfast.diagnosis.remedies import remedies_for
from holdfast.vocabulary import Event
from tests.detectors.numeric_events import (
    FALLS,
    FLAT,
    INPUT,
    causes,
    groups,
    health,
    part,
    setup,
)
from tests.detectors.test_numerics import SICK


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
    "a rate that jumped some samples before": (
        "learning-rate-too-high",
        "it was 0.001 before, a jump",
        [setup(), *health([*FALLS[:5], 9e5, 9e8], rate=[1e-3] * 5 + [0.05] * 2), incident(origin="loss", before={**GROWS, "rate": 0.05})],
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
    "pixels of 0 to 255 into an exponential": (
        "unscaled-input",
        "the input reaches 255",
        [incident(origin="loss", step=1, before={"largest_weight": 0.2, "largest_input": 255.0}, values="5.5e+19 squared", place={"op": "Square"})],
    ),
    "a power of what such pixels became": (
        "unscaled-input",
        "pow (-2.1e+31 in float32)",
        [incident(origin="loss", step=1, before={"largest_weight": 0.2, "largest_input": 255.0}, values="-2.1e+31 in float32", place={"op": "pow"})],
    ),
    "a column that is divided by its deviation of 0": (
        "bad-input-values",
        "all rows of the batch have it, in column 7",
        [setup(), incident(origin="input", input={"name": "x", "rows": [0, 1], "row_count": 32, "columns": [7], "what": "NaN"})],
    ),
    "no label counts, in a recurrent model": (
        "invalid-math",
        "all 6 are -100",
        [
            setup(recurrent=True, **part("loss", classes=30), output={"shape": [1, 6, 30]}, targets={"min": -100, "max": 29, "integers": True}),
            incident(origin="loss", before=STEADY, values="no label that counts: all 6 are -100, which is passed over", place={"op": "cross_entropy"}),
        ],
    ),
    "a mean over nothing": (
        "invalid-math",
        "0.5 in float32",
        [setup(recurrent=True), incident(origin="loss", before=STEADY, values="0.5 in float32", place={"op": "mse_loss"})],
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
    "an operation in half precision, in a model that has no such setting": (
        "mixed-precision-overflow",
        "405.2 times 405.2",
        [incident(origin="forward", step=1, values="405.2 times 405.2", place={"op": "Mul", "dtype": "float16"})],
    ),
    "weights of classes, one of which is missing": (
        "invalid-math",
        "weights, which the script made itself and which is no part of the data, holds Inf at 4",
        [setup(), incident(origin="constant", input={"name": "weights", "what": "Inf", "rows": [], "indices": [4], "row_count": 1})],
    ),
    "an optimizer without an epsilon": (
        "invalid-math",
        "the epsilon of Adam is 0: where a gradient was always 0, its update is 0 / 0",
        [setup(**part("optimizer", epsilon=0.0)), incident(origin="weights", step=1, before={**STEADY, "update_ratio": 0.3})],
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


MENDED_BY: dict[str, list[Event]] = {
    "torch.sqrt(squares + 1e-8)": [*INCIDENTS["root of zero, backwards"][2]],
    "torch.log(p.clamp_min(1e-7))": [*INCIDENTS["log of zero"][2]],
    "count.clamp_min(1e-8)": [setup(), incident(origin="forward", values="0.0 divided by 0.0", place={"op": "div"})],
    "counts.clamp(min=1)": [*INCIDENTS["weights of classes, one of which is missing"][2]],
    "numpy.isfinite(y.": [setup(), incident(origin="target", input={"rows": [3], "row_count": 1, "what": "NaN"})],
    'group["lr"] = 0.001': [*INCIDENTS["a rate that jumped"][2]],
    "lr=0.001)": [setup(), *health(FLAT, rate=1.0, groups=groups(update=2.0))],
    "without .detach()": [*SICK["features were detached"][1]],
    "eps=1e-8": [*INCIDENTS["an optimizer without an epsilon"][2]],
    "torch.bfloat16": [*INCIDENTS["half precision"][2]],
}  # fmt: skip


@pytest.mark.parametrize("how", MENDED_BY)
def test_the_first_remedy_is_for_the_operation_the_part_of_the_data_or_the_rate_that_was_found(how: str) -> None:
    (found,) = causes(*MENDED_BY[how]).values()
    remedies = remedies_for(found, "torch")
    assert how in remedies[0].how, remedies
    assert sum("torch.log(" in one.how for one in remedies) == ("torch.log(" in how)
    assert not any("GradScaler" in one.how for one in remedies), "a scaled loss overflows sooner"


def test_not_a_number_comes_as_a_word() -> None:
    found = causes(setup(), *health(["nan"] * 20), incident(before={"losses": [[1, "inf"], [2, math.inf]]}))  # type: ignore[list-item]
    assert list(found) == ["invalid-math"]
