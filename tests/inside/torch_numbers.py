"""Loops with sick numbers and healthy twins, all in one process: `python -m tests.inside.torch_numbers POLICY`.

Prints one line of JSON: by loop, the losses it saw and what was told. The loops are written as people write them.
"""

from __future__ import annotations

import json
import math
import sys
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from holdfast.inside.telemetry import Recorder
from holdfast.inside.torch import step
from holdfast.inside.torch.compile_phase import Compiling
from holdfast.inside.torch.numerics import left_out
from holdfast.inside.torch.numerics.hooks import Looks, _look_before_evaluations, _note_calls, aspect_of
from holdfast.inside.torch.outermost_call import begin_noting
from holdfast.inside.torch.telemetry import Telemetry
from holdfast.inside.torch.usual_step import UsualStep
from holdfast.inside.torch.wrapped_calls import telling
from tests.inside import torch_misuse, torch_untrained
from tests.inside.torch_number_loops import BAD, LOOPS, STEPS, data, loop, network


class Ring:
    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def text(self, kind: str, _at: float, **data: Any) -> None:
        if kind.startswith(("numerics.", "inside.failed")):
            self.told.append({"kind": kind, **json.loads(json.dumps(data, allow_nan=False))})

    def step(self, *_: Any) -> None: ...

    def value(self, *_: Any) -> None: ...

    def command(self) -> None: ...


@loop
def infinity_behind_tanh() -> list[float]:
    """The loss is finite: a saturated unit hides it."""
    x, y = data()
    x[BAD, 4, 2] = math.inf
    model, losses = network(), []
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for xb, yb in zip(x, y, strict=True):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def nan_rows() -> list[float]:
    x, y = data()
    x[BAD, 3, 1] = x[BAD, 9, 1] = math.nan
    model, losses = network(), []
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for xb, yb in zip(x, y, strict=True):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def nan_target() -> list[float]:
    x, y = data()
    y[BAD, 5] = math.inf
    model, losses = network(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for xb, wanted in zip(x, y, strict=True):
        prediction = model(xb)
        loss = ((prediction - wanted) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def own_loss(p: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return -torch.log(p[torch.arange(len(y)), y]).mean()


@loop
def log_of_zero() -> list[float]:
    x, y = data(classes=2)
    model, losses = network(2, nn.Softmax(1)), []
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for number in range(STEPS):
        xb, yb = x[number], y[number]
        optimizer.zero_grad()
        p = model(xb) * (0.0 if number == BAD else 1.0)
        loss = own_loss(p, yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def two_optimizers() -> list[float]:
    x, y = data(classes=2)
    body, head, losses = nn.Sequential(nn.Linear(6, 8), nn.Tanh()), nn.Linear(8, 2), []
    first, second = torch.optim.Adam(body.parameters(), 0.01), torch.optim.SGD(head.parameters(), 0.05)
    for number in range(STEPS):
        xb, yb = x[number], y[number]
        p = torch.softmax(head(body(xb)), 1) * (0.0 if number == BAD else 1.0)
        loss = own_loss(p, yb)
        first.zero_grad()
        second.zero_grad()
        loss.backward()
        first.step()
        second.step()
        losses.append(loss.item())
    return losses


class Standardised(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = network()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = (x - x.mean(0)) / x.std(0)
        return self.inner(x)  # type: ignore[no-any-return]


@loop
def division_by_zero() -> list[float]:
    x, y = data()
    x[BAD, :, 2] = 1.0
    model, losses = Standardised(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for xb, yb in zip(x, y, strict=True):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def root_of_zero() -> list[float]:
    x, _ = data()
    model, losses = network(4), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for number in range(STEPS):
        one, other = x[number], x[number - 1].clone()
        if number == BAD:
            other[3] = one[3]
        optimizer.zero_grad()
        distance = torch.sqrt(((model(one) - model(other)) ** 2).sum(1))
        loss = ((distance - 1) ** 2).mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def logarithm_behind_where() -> list[float]:
    x, _ = data()
    model, losses = network(1, nn.Sigmoid()), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for number, xb in enumerate(x):
        optimizer.zero_grad()
        p = model(xb) * (0.0 if number == BAD else 1.0)
        entropy = torch.where(p > 0, p * torch.log(p), torch.zeros_like(p))
        loss = entropy.mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def all_is_masked() -> list[float]:
    x, y = data(classes=2)
    model, losses = network(4), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for number in range(STEPS):
        xb, yb = x[number], y[number]
        optimizer.zero_grad()
        mask = torch.zeros(16, 4, dtype=torch.bool)
        mask[:, 2:] = True
        if number == BAD:
            mask[7] = True
        attention = torch.softmax(model(xb).masked_fill(mask, -math.inf), dim=1)
        loss = (attention[:, 0] - yb).abs().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def rate_far_too_high() -> list[float]:
    torch.manual_seed(1)
    x = torch.randn(256, 8)
    y = x @ torch.randn(8, 1) + 3
    model, losses = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1)), []
    optimizer = torch.optim.SGD(model.parameters(), 2.0)
    for _ in range(200):
        i = torch.randint(0, 256, (32,))
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[i]), y[i])
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def weights_are_spoiled() -> list[float]:
    """As by an update that overflowed: nothing was wrong with the step before."""
    x, y = data()
    model, losses = network(), []
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for number in range(STEPS):
        xb, yb = x[number], y[number]
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if number == BAD - 1:
            model[0].weight.data[2, 1] = math.nan
    return losses


@loop
def never_finite() -> list[float]:
    x, y = data()
    model, losses = network(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for xb, yb in zip(x, y, strict=True):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb) + torch.log(model(xb).sum() * 0)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def script_drops_it() -> list[float]:
    """Healthy enough: an update is never made with it."""
    x, y = data()
    x[BAD, 3, 1] = math.nan
    model, losses = network(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for xb, yb in zip(x, y, strict=True):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        if not torch.isfinite(loss):
            continue
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def healthy_classifier() -> list[float]:
    """Missing values are NaN and masked by the model, scores are masked with -inf, gradients are clipped."""
    x, y = data(classes=2)
    x[:, ::4, 0] = math.nan
    model, losses = (
        nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Dropout(0.1), nn.Linear(16, 3)),
        [],
    )
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    criterion = nn.CrossEntropyLoss()
    impossible = torch.tensor([0.0, 0.0, -math.inf])
    for xb, yb in zip(x, y, strict=True):
        scores = model(torch.nan_to_num(xb)) + impossible
        loss = criterion(scores, yb)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def softmax_before_cross_entropy() -> list[float]:
    x, y = data(classes=2)
    model, losses = network(2, nn.Softmax(1)), []
    model[0].weight.requires_grad_(False)
    nn.init.zeros_(model[2].weight)
    optimizer = torch.optim.SGD([model[2].weight], 0.5, momentum=0.9)
    for xb, yb in zip(x, y, strict=True):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(xb * 1000), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def slot_is_spoiled() -> list[float]:
    x, y = data()
    model, losses = network(), []
    optimizer = torch.optim.Adam(model.parameters(), 0.01)
    for number in range(STEPS):
        xb, yb = x[number], y[number]
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if number == BAD - 1:
            optimizer.state[model[0].weight]["exp_avg"][2, 1] = math.nan
    return losses


def main(policy: str) -> None:
    torch.set_num_threads(1)
    left_out.STEPS = 20
    ring = Ring()
    recorder = Recorder(ring, {"policy": policy})  # type: ignore[arg-type]
    telemetry = Telemetry(recorder, torch, Compiling(recorder))
    looks = Looks(recorder, torch, telemetry)
    begin_noting()
    _note_calls(torch)
    _look_before_evaluations(torch, looks)
    step.take_over(
        torch,
        [telling(telemetry), aspect_of(looks, torch)],
        lambda: UsualStep(torch, telemetry, None, None, None, looks, None),
    )
    found: dict[str, Any] = {}
    for name, function in {**LOOPS, **torch_untrained.LOOPS, **torch_misuse.LOOPS}.items():
        torch.manual_seed(0)
        recorder.steps, ring.told, error = 0, [], ""
        telemetry.lane.leave()
        looks.__init__(recorder, torch, telemetry)  # type: ignore[misc]
        losses: list[float] = []
        try:
            losses = function()
        except RuntimeError as raised:
            error = f"{type(raised).__name__}: {raised}"
        found[name] = {"losses": [str(value) for value in losses], "told": ring.told, "error": error}
    print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1])
