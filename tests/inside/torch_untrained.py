"""Loops whose running statistics go bad, or some of whose parameters nobody trains, and healthy twins. `torch_numbers.py` runs them."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

from tests.inside.torch_number_loops import BAD, LOOPS, STEPS, data, loop, network

__all__ = ["LOOPS"]


def with_statistics(bad: int) -> list[float]:
    x, y = data()
    x[bad, 3, 1] = math.nan
    model, losses = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.Linear(8, 1)), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for xb, yb in zip(x, y, strict=True):
        loss = F.mse_loss(model(xb), yb)
        if torch.isnan(loss):
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    model.eval()
    losses.append(F.mse_loss(model(x[0]), y[0]).item())
    return losses


@loop
def statistics_take_in_what_is_dropped() -> list[float]:
    return with_statistics(BAD)


@loop
def statistics_before_an_evaluation() -> list[float]:
    """The last batch: no update comes after it."""
    return with_statistics(STEPS - 1)


class Masked(nn.Module):
    """Buffers that hold infinities and NaN on purpose, and one that begins without a number."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = network()
        self.register_buffer("mask", torch.full((16, 1), -math.inf).tril(-20))
        self.register_buffer("empty", torch.full((4,), math.nan))
        self.register_buffer("running_least", torch.full((1,), math.inf))
        self.register_buffer("running_usual", torch.full((1,), math.nan))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.running_least = torch.minimum(self.running_least, x.detach().amin())
        return self.inner(x) + self.mask  # type: ignore[no-any-return]


@loop
def buffers_without_numbers_on_purpose() -> list[float]:
    x, y = data()
    model, losses = Masked(), []
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for number in range(STEPS):
        model.train()
        loss = F.mse_loss(model(x[number]), y[number])
        if number % 7 == 3:
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        model.eval()
    return losses


class Listed(nn.Module):
    def __init__(self, hidden: list[nn.Module], **others: Any) -> None:
        super().__init__()
        self.hidden, self.others, self.head = hidden, others, nn.Linear(6, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in (*self.hidden, *self.others.values()):
            x = torch.tanh(layer(x))
        return self.head(x)  # type: ignore[no-any-return]


def trained(model: nn.Module, parameters: Any = None, by_hand: nn.Module | None = None) -> list[float]:
    x, y = data()
    losses = []
    optimizer = torch.optim.SGD(model.parameters() if parameters is None else parameters, 0.01)
    for xb, yb in zip(x, y, strict=True):
        optimizer.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        optimizer.step()
        for parameter in by_hand.parameters() if by_hand is not None else ():
            parameter.data -= 0.01 * parameter.grad
        losses.append(loss.item())
    return losses


@loop
def layers_in_a_plain_list() -> list[float]:
    return trained(Listed([nn.Linear(6, 6), nn.Linear(6, 6)]))


@loop
def a_teacher_hidden_in_a_list() -> list[float]:
    return trained(Listed([nn.Linear(6, 6).eval()], frozen=nn.Linear(6, 6).requires_grad_(False)))


@loop
def listed_layers_that_are_trained() -> list[float]:
    """One is given to the optimizer, the other is updated by hand."""
    listed, by_hand = nn.Linear(6, 6), nn.Linear(6, 6)
    model = Listed([listed], by_hand=by_hand)
    return trained(model, [*model.parameters(), *listed.parameters()], by_hand)


@loop
def head_alone() -> list[float]:
    model = network()
    return trained(model, model[2].parameters())


@loop
def decoder_alone() -> list[float]:
    """Two models whose layers have the same names."""
    encoder, decoder = network(8), nn.Sequential(nn.Linear(8, 4), nn.Tanh(), nn.Linear(4, 1))

    def both(x: torch.Tensor) -> torch.Tensor:
        return decoder(encoder(x))  # type: ignore[no-any-return]

    return trained(both, decoder.parameters())  # type: ignore[arg-type]


class Compared(nn.Module):
    """A copy that stays as it is, in training mode and not frozen: a teacher, the target of Q-learning."""

    def __init__(self) -> None:
        super().__init__()
        self.online, self.measure, self.teacher = network(8), nn.Linear(8, 4), network(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        difference = self.measure(self.online(x)) - self.measure(self.teacher(x))
        return difference.sum(1, keepdim=True)


@loop
def a_teacher_and_a_measure() -> list[float]:
    model = Compared()
    return trained(model, model.online.parameters())


@loop
def head_put_there_too_late() -> list[float]:
    model = network()
    parameters = list(model[2].parameters())
    model[2] = nn.Linear(16, 1)
    return trained(model.requires_grad_(True), parameters)
