"""Whole steps under torch.compile, bad and healthy: `python -m tests.inside.torch_compiled_steps BACKEND` prints what came of each."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import torch
from torch import nn

from tests.inside.lack_of_memory import listening, told

STEPS, BAD = 30, 21


def trained(backend: str, kind: str) -> tuple[list[float], float]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    def train_step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = (model(x) - y).square().mean()
        loss.backward()
        optimizer.step()
        return {"loss": loss.detach(), "rows": x.shape[0]}

    def forward_only(x: Any, y: Any) -> Any:
        return {"loss": (model(x) - y).square().mean()}

    compiled: Any = torch.compile(forward_only if kind == "forward" else train_step, backend=backend)
    losses = []
    for number in range(1, STEPS + 1):
        x = torch.randn(16, 8)
        y = x.sum(1, keepdim=True)
        if kind == "bad" and number == BAD:
            x[3] = math.nan
        found = compiled(x, y)
        if kind == "forward":
            optimizer.zero_grad()
            found["loss"].backward()
            optimizer.step()
        losses.append(float(found["loss"]))
    return losses, sum(float(p.detach().double().sum()) for p in model.parameters())


def main(backend: str) -> None:
    torch.set_num_threads(1)
    bare = trained(backend, "healthy")
    from holdfast.inside.torch import adapter

    recorder = listening()
    adapter.install(recorder)
    found: dict[str, Any] = {}
    for kind in ("healthy", "bad", "forward"):
        told.clear()
        before = recorder.steps
        result = trained(backend, kind)
        events = [data for name, data in told if name == "numerics.non_finite"]
        found[kind] = {
            "as bare": result == bare,
            "steps": recorder.steps - before,
            "not seen": [data["reason"] for name, data in told if name == "step.not_seen"],
            "bad": [(data["step"] - before, data["seen_in"], data["origin"]) for data in events],
            "failed": [data["reason"] for name, data in told if name == "inside.failed"],
        }
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
