"""`holdfast.plan(…)` and `holdfast.fit_batch(…)`, in a process of their own: what they measure is the whole process."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import holdfast
from tests.workplace import PATIENCE_S

FITTED = """
import json
import holdfast
from holdfast.inside.held_memory import held_by_this_process

seen = []

def step(batch):
    seen.append(len(batch) >> 20)
    batch[::4096] = b"x" * len(batch[::4096])

limit = held_by_this_process() + (500 << 20)
found = holdfast.fit_batch(step, lambda rows: bytearray(rows << 20), memory=limit, seconds=20)
print(json.dumps({"found": found, "sizes": sorted(set(seen))}))
"""
PLANNED = """
import json
import torch
import holdfast
from torch import nn

torch.set_num_threads(1)
torch.manual_seed(3)
model = nn.Sequential(nn.Linear(64, 512), nn.BatchNorm1d(512), nn.ReLU(), nn.Dropout(), nn.Linear(512, 10))
optimizer = torch.optim.Adam(model.parameters())
x, y = torch.randn(32, 64), torch.randint(0, 10, (32,))
before, drawn = {k: v.clone() for k, v in model.state_dict().items()}, torch.get_rng_state()
plan = holdfast.plan(model, (x, y), optimizer, nn.functional.cross_entropy, size=128, memory=1 << 30, seconds=2)
print(json.dumps({
    "same": all(torch.equal(v, before[k]) for k, v in model.state_dict().items()),
    "state": len(optimizer.state), "drawn": torch.equal(drawn, torch.get_rng_state()),
    "grad": model[0].weight.grad is None, "hooks": len(nn.modules.module._global_forward_hooks), **plan.as_json(),
}))
"""

OF_KERAS = """
import json
import numpy
import keras
import holdfast

def made():
    drawn = keras.initializers.GlorotUniform(seed=1)
    return keras.Sequential([
        keras.layers.Dense(512, "relu", kernel_initializer=drawn), keras.layers.Dropout(0.5),
        keras.layers.Dense(10, kernel_initializer=drawn)])

model, twin = made(), made()
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
x, y = numpy.random.rand(32, 64).astype("float32"), numpy.random.randint(0, 10, 32)
twin(x)
plan = holdfast.plan(model, (x, y), size=128, memory=2 << 30, seconds=2)
print(json.dumps({
    "same": all(numpy.array_equal(mine, other) for mine, other in zip(model.get_weights(), twin.get_weights(), strict=True)),
    "steps": int(model.optimizer.iterations), **plan.as_json(),
}))
"""


def told(source: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def test_the_largest_batch_of_a_step_is_found_without_one_that_is_too_large() -> None:
    """A MiB a row, in a process that may take 500 more; and what was tried never took twice the limit."""
    answer = told(FITTED)
    assert 400 <= answer["found"] <= 500
    assert max(answer["sizes"]) < 700
    assert len(answer["sizes"]) < 14


def test_a_plan_leaves_model_optimizer_and_random_numbers_as_they_were() -> None:
    answer = told(PLANNED)
    assert (answer["same"], answer["state"], answer["drawn"], answer["grad"], answer["hooks"]) == (
        True,
        0,
        True,
        True,
        0,
    )
    assert (answer["batch"], answer["fits"]) == (128, True)
    assert answer["by_kind"]["weights"] == answer["by_kind"]["gradients"] + 4 * 1024 + 8


def test_a_plan_leaves_a_keras_model_as_it_was_even_one_that_was_not_built() -> None:
    answer = told(OF_KERAS)
    assert (answer["same"], answer["steps"]) == (True, 0)
    assert (answer["batch"], answer["fits"]) == (128, True)
    assert 0 <= answer["by_kind"]["weights"] - 4 * (64 * 512 + 512 + 512 * 10 + 10) < 64  # and the seed of dropout


def test_both_are_names_of_the_package() -> None:
    assert callable(holdfast.plan)
    assert callable(holdfast.fit_batch)
