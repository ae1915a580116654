"""Trains models in one process, first as they are, then with Holdfast and a layer that runs out of memory on purpose.

Prints one JSON object: for each case what the runs had in common and what not.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"

import keras
import numpy as np
import tensorflow as tf

from holdfast.inside import never_raise
from holdfast.inside.keras import adapter
from holdfast.inside.telemetry import Recorder
from tests.inside.keras_cases import ADAM, ANY, CASES, IN_FLOAT64, MIXED, REFUSED, TOKENS, Memory, X, Y
from tests.inside.recorded import Events


def train(case: tuple[Any, Any, dict[str, Any]], backward: int = ANY) -> dict[str, Any]:
    build, how, limits = case
    Memory.backward, Memory.forward, Memory.refusals = backward, ANY, 0
    if backward < ANY:
        Memory.forward = limits.get("forward", ANY)
    keras.utils.set_random_seed(1)
    model = build()
    done = how(model)
    weights = [np.asarray(weight, "float64") for weight in model.get_weights()]
    rate = float(np.asarray(model.optimizer.learning_rate))
    state = [np.asarray(variable).tobytes() for variable in model.variables]
    iterations = int(np.asarray(model.optimizer.iterations))
    return {
        **done,
        "weights": weights,
        "iterations": iterations,
        "rate": rate,
        "state": state,
        "refusals": Memory.refusals,
    }


def apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    a, b = (np.concatenate([weight.ravel() for weight in run["weights"]]) for run in (one, other))
    return float(np.linalg.norm(a - b) / np.linalg.norm(a))


def logs_apart(one: dict[str, Any], other: dict[str, Any]) -> float:
    worst = 0.0
    for key, values in one["history"].items():
        for a, b in zip(values, other["history"][key], strict=True):
            worst = max(worst, abs(a - b) / max(abs(a), 1e-3))
    return worst


def compare(bare: dict[str, Any], healthy: dict[str, Any], rescued: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "healthy_equal": healthy["state"] == bare["state"] and healthy["history"] == bare["history"],
        "healthy_apart": apart(bare, healthy),
        "apart": [apart(bare, run) for run in rescued],
        "logs_apart": [logs_apart(bare, run) for run in rescued],
        "between": apart(rescued[0], rescued[-1]),
        "refusals": [run["refusals"] for run in rescued],
        "same_order": all(
            (run["iterations"], run["rate"], run.get("calls")) == (bare["iterations"], bare["rate"], bare.get("calls"))
            for run in rescued
        ),
    }


def all_cases() -> list[tuple[str, Any, str]]:
    return [
        *((name, case, "float32") for name, case in {**CASES, **ADAM}.items()),
        *((name, case, "float64") for name, case in IN_FLOAT64.items()),
        *((name, case, "mixed_float16") for name, case in MIXED.items()),
    ]


def under(policy: str) -> None:
    keras.config.set_floatx("float64" if policy == "float64" else "float32")
    keras.config.set_dtype_policy(policy)


def unasked(names: list[str]) -> None:
    """With nothing asked for and room for everything: every bit as without Holdfast, also of evaluation and prediction."""
    chosen = [(name, case) for name, case in CASES.items() if name in names]

    def predicted(case: Any) -> Any:
        keras.utils.set_random_seed(1)
        model = case[0]()
        case[1](model)
        x = TOKENS if model.inputs[0].shape[1] == 9 else X
        return train(case), model.predict(x, batch_size=100, verbose=0).tobytes(), model.evaluate(x, Y, verbose=0)

    bare = {name: predicted(case) for name, case in chosen}
    events = Events()
    never_raise.on_failure(lambda place, reason: events.text("inside.failed", 0, place=place, reason=reason))
    adapter.install(Recorder(events, {"policy": "protect", "groups": [], "rescue": {"k": None, "ranks": 1}}))  # type: ignore[arg-type]
    found = {}
    for name, case in chosen:
        (first, outputs, scores), (now, outputs_now, scores_now) = bare[name], predicted(case)
        same = first["state"] == now["state"] and first["history"] == now["history"]
        found[name] = same and outputs == outputs_now and scores == scores_now
    told = [[kind, data] for kind, data in events.told if kind.startswith(("rescue", "inside"))]
    print(json.dumps({"same": found, "told": told}))


def main() -> None:
    if sys.argv[1:2] == ["--unasked"]:
        unasked(sys.argv[2:])
        return
    wanted = sys.argv[1:]
    cases = [item for item in all_cases() if not wanted or item[0] in wanted]
    bare = {}
    for name, case, policy in cases:
        under(policy)
        bare[name] = train(case)
    events = Events()
    never_raise.on_failure(lambda place, reason: events.text("inside.failed", 0, place=place, reason=reason))
    adapter.install(Recorder(events, {"policy": "protect", "rescue": {"k": None, "host_budget_bytes": 1 << 40}}))  # type: ignore[arg-type]
    results = {}
    for name, case, policy in cases:
        under(policy)
        before = len(events.told)
        healthy = train(case)
        told = events.told[before:]
        rescued = [train(case, backward=rows) for rows in (26, 7)]
        results[name] = compare(bare[name], healthy, rescued)
        results[name]["told_healthy"] = [kind for kind, _ in told if kind.startswith(("rescue", "inside"))]
        results[name]["told"] = [
            [kind, data] for kind, data in events.told[before:] if kind.startswith(("rescue", "inside"))
        ]
    under("float32")
    for name, case in REFUSED.items():
        if wanted and name not in wanted:
            continue
        before, error = len(events.told), ""
        try:
            train(case, backward=7)
        except tf.errors.ResourceExhaustedError as raised:
            error = type(raised).__name__
        results[name] = {
            "error": error,
            "told": [[kind, data] for kind, data in events.told[before:] if "rescue" in kind],
        }
    print(json.dumps(results))


if __name__ == "__main__":
    main()
