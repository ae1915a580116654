"""Trains a wide network of 80 MB of weights on the CPU and prints its peak of memory: bare on a small batch, or in pieces.

    python torch_peak.py backward|keras ROWS K

K is 1 for the bare script; else every batch of so many rows is cut into K pieces from the first one on, as after a kill.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ["KERAS_BACKEND"] = "torch"
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import torch

from holdfast.inside import never_raise
from holdfast.inside.telemetry import Recorder
from tests.inside.lack_of_memory import Ring, told

WIDE, NARROW, STEPS = 4880, 1024, 3
MODE, ROWS, K = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def settings() -> dict[str, Any]:
    return {"policy": "protect", "rescue": {"k": K, "host_budget_bytes": 1 << 40}}


def batches(rows: int) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    return random.normal(size=(rows * STEPS, NARROW)).astype("f"), random.integers(0, NARROW, rows * STEPS)


def plain_loop() -> int:
    layers = [torch.nn.Linear(NARROW, WIDE), torch.nn.ReLU(), torch.nn.Linear(WIDE, WIDE // 2), torch.nn.ReLU()]
    frozen = torch.nn.Linear(NARROW, NARROW)
    frozen.requires_grad_(False)
    model = torch.nn.Sequential(frozen, *layers, torch.nn.Linear(WIDE // 2, NARROW))
    model.register_buffer("table", torch.zeros(4_000_000))  # which no step changes
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)

    def loss_of(x: Any, y: Any) -> Any:
        return torch.nn.functional.cross_entropy(model(x), y)

    if K > 1:
        from holdfast.inside import api

        recorder = Recorder(Ring(), settings())  # type: ignore[arg-type]
        api._recorder = lambda: recorder  # type: ignore[attr-defined]
    x, y = map(torch.from_numpy, batches(ROWS))
    for number in range(STEPS):
        here = slice(number * ROWS, (number + 1) * ROWS)
        optimizer.zero_grad()
        if K > 1:
            api.backward(model, loss_of, x[here], y[here])
        else:
            loss_of(x[here], y[here]).backward()
        optimizer.step()
    return sum(p.numel() * p.element_size() for p in model.parameters() if p.requires_grad)


def keras_fit() -> int:
    import keras

    from holdfast.inside.keras import adapter

    layers = keras.layers
    frozen = layers.Dense(NARROW, trainable=False)
    wide = [layers.Dense(WIDE, activation="relu"), layers.Dense(WIDE // 2, activation="relu"), layers.Dense(NARROW)]
    model = keras.Sequential([layers.Input((NARROW,)), frozen, *wide])
    model.compile(keras.optimizers.SGD(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    if K > 1:
        adapter.install(Recorder(Ring(), settings()))  # type: ignore[arg-type]
    x, y = batches(ROWS)
    model.fit(x, y, batch_size=ROWS, shuffle=False, verbose=0)
    return sum(int(v.value.numel()) * 4 for v in model.trainable_variables)


never_raise.on_failure(lambda place, reason: told.append(("inside.failed", {"reason": f"{place} {reason}"})))
gradients = plain_loop() if MODE == "backward" else keras_fit()
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
peak = int(status["VmHWM"].split()[0]) << 10
print(json.dumps({"peak": peak, "gradients": gradients, "told": [(kind, str(data)) for kind, data in told]}))
