"""Loops whose mistake is in the loop itself: gradients that nobody clears, layers with nothing between, shapes and axes that do not fit."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

STEPS = 40
BAD = 12
LOOPS: dict[str, Callable[[], list[float]]] = {}


def loop(function: Callable[[], list[float]]) -> Callable[[], list[float]]:
    LOOPS[function.__name__] = function
    return function


def data(rows: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.randn(STEPS, rows, 6)
    return x, x[:, :, :1] - x[:, :, 2:3]


def network(*between: nn.Module) -> nn.Sequential:
    return nn.Sequential(nn.Linear(6, 16), *between, nn.Linear(16, 1))


@loop
def gradients_are_not_cleared() -> list[float]:
    x, y = data()
    model, losses = network(nn.ReLU()), []
    optimizer = torch.optim.SGD(model.parameters(), 1e-4)
    for xb, yb in zip(x, y, strict=True):
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def gradients_add_up_on_purpose() -> list[float]:
    """Healthy: micro-batches, zeros instead of none, and a second model that keeps its gradients meanwhile."""
    x, y = data()
    model, other, losses = network(nn.ReLU()), network(nn.ReLU()), []
    optimizer, second = (torch.optim.SGD(each.parameters(), 1e-3) for each in (model, other))
    for xb, yb in zip(x, y, strict=True):
        optimizer.zero_grad(set_to_none=False)
        for part in (slice(0, 4), slice(4, 8)):
            loss = F.mse_loss(model(xb[part]), yb[part])
            loss.backward()
        optimizer.step()
        second.zero_grad()
        F.mse_loss(other(xb) + model(xb), yb).backward()  # adds to the gradients of the first, too
        second.step()
        losses.append(loss.item())
    return losses


@loop
def nothing_between_the_layers() -> list[float]:
    x, y = data()
    model, losses = network(nn.Dropout(0.1)), []
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for xb, yb in zip(x, y, strict=True):
        optimizer.zero_grad()
        loss = ((model(xb) - yb[:, 0]) ** 2).mean()  # (8, 1) - (8,)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def softmax_over_the_rows() -> list[float]:
    x, y = data()
    model, losses = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)), []
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for xb, yb in zip(x, y, strict=True):
        optimizer.zero_grad()
        loss = F.nll_loss(F.log_softmax(model(xb), dim=0), (yb[:, 0] > 0).long())
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@loop
def gradients_by_autograd_grad() -> list[float]:
    x, y = data()
    x[BAD, 3, 1] = x[2 * BAD, 0, 0] = math.nan
    model, losses = network(nn.Tanh()), []
    optimizer = torch.optim.SGD(model.parameters(), 1e-2)
    for xb, yb in zip(x, y, strict=True):
        loss = F.mse_loss(model(xb), yb)
        for parameter, gradient in zip(
            model.parameters(), torch.autograd.grad(loss, list(model.parameters())), strict=True
        ):
            parameter.grad = gradient
        optimizer.step()
        losses.append(sum(p.sum().item() for p in model.parameters()))
    return losses
