"""Every variable of a model before and after a step that ran out of memory. Prints a JSON line.

In the middle of the backward pass a layer refuses; what a stock step leaves changed by then is printed beside what is
changed once it was put back.
"""

from __future__ import annotations

import contextlib
import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

import numpy as np
from keras import layers

from tests.inside.keras_cases import Costly, Memory, X, Y
from tests.inside.keras_rescue import Recorder, adapter, keras, tf
from tests.inside.recorded import Events


def model_of_everything() -> Any:
    keras.utils.set_random_seed(1)
    model = keras.Sequential(
        [
            layers.Input((12,)), layers.Dense(8), Costly(), layers.BatchNormalization(), layers.Dropout(0.3),
            layers.Dense(8, activation="relu"), layers.Dense(3, dtype="float32"),
        ]
    )  # fmt: skip
    optimizer = keras.optimizers.Adam(1e-2)
    model.compile(optimizer, keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
    return model


def values(model: Any) -> dict[str, bytes]:
    everything = [*model.variables, *model.optimizer.variables, *model.metrics_variables]
    return {f"{number} {variable.path}": np.asarray(variable).tobytes() for number, variable in enumerate(everything)}


def changed_by_a_failed_step(model: Any) -> tuple[list[str], int]:
    Memory.backward = Memory.forward = 10**9
    model.fit(X[:102], Y[:102], batch_size=51, verbose=0, shuffle=False)
    before, Memory.backward, Memory.refusals = values(model), 0, 0
    with contextlib.suppress(tf.errors.ResourceExhaustedError):
        model.train_function(iter(tf.data.Dataset.from_tensors((X[:51].astype("f"), Y[:51]))))
    after = values(model)
    return [name for name in before if before[name] != after[name]], Memory.refusals


stock, _ = changed_by_a_failed_step(model_of_everything())
adapter.install(Recorder(Events(), {"policy": "protect", "rescue": {"k": None, "host_budget_bytes": 1 << 40}}))  # type: ignore[arg-type]
ours, refusals = changed_by_a_failed_step(model_of_everything())
print(json.dumps({"stock": stock, "ours": ours, "refusals": refusals}))
