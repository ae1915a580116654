"""Loops out of the ordinary, one after another in one process; prints what Holdfast counted in each."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
recorder = sys.modules["holdfast_inside.start"].recorder()
X, Y = torch.randn(64, 4), torch.randn(64, 1)
COUNTED: dict[str, Any] = {}


def loop(case: Callable[[], Any]) -> Callable[[], Any]:
    before = recorder.steps
    said = case()
    COUNTED[case.__name__] = {"told": recorder.steps - before, "own": said, "epoch": recorder.epoch_number}
    return case


def made(kind: Any = torch.optim.SGD, **options: Any) -> tuple[nn.Module, Any]:
    model = nn.Linear(4, 1)
    return model, kind(model.parameters(), lr=0.01, **options)


def backward(model: nn.Module, x: torch.Tensor = X, y: torch.Tensor = Y) -> torch.Tensor:
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


def loader(rows: int = 8, **options: Any) -> DataLoader[Any]:
    return DataLoader(TensorDataset(X, Y), batch_size=rows, **options)


@loop
def tensors_in_memory() -> int:
    model, optimizer = made()
    for _ in range(10):
        backward(model)
        optimizer.step()
    return 10


@loop
def lbfgs() -> int:
    model, optimizer = made(torch.optim.LBFGS, max_iter=5)

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        return backward(model)

    for _ in range(6):
        optimizer.step(closure)
    return 6


@loop
def in_a_thread() -> int:
    def work() -> None:
        model, optimizer = made()
        for x, y in loader():
            backward(model, x, y)
            optimizer.step()

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    return 8


@loop
def two_threads_each_with_an_optimizer() -> int:
    def work() -> None:
        model, optimizer = made()
        for _ in range(50):
            backward(model)
            optimizer.step()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return 100


@loop
def an_optimizer_inside_another() -> int:
    class Twice(torch.optim.Optimizer):
        def __init__(self, inner: Any) -> None:
            super().__init__(inner.param_groups, {})
            self.inner = inner

        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            self.inner.step()
            self.inner.step()

    model, inner = made()
    optimizer = Twice(inner)
    for _ in range(7):
        backward(model)
        optimizer.step()
    return 7


@loop
def one_after_another() -> int:
    for _ in range(2):
        model, optimizer = made()
        for x, y in loader():
            backward(model, x, y)
            optimizer.step()
    return 16


@loop
def five_updates_of_the_critic_for_one_of_the_generator() -> int:
    critic, update_critic = made()
    generator, update_generator = made()
    for number in range(20):
        backward(critic)
        update_critic.step()
        if number % 5 == 4:
            backward(generator)
            update_generator.step()
    return 20


@loop
def fused_amp_that_skips() -> int:
    model, optimizer = made(torch.optim.Adam, fused=True)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0)
    for number in range(12):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(X), Y) * (float("inf") if number % 4 == 1 else 1.0)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    return 9


@loop
def compiled_model() -> int:
    model, optimizer = made()
    compiled = torch.compile(model, backend="eager")
    for x, y in loader():
        backward(compiled, x, y)  # type: ignore[arg-type]
        optimizer.step()
    return 8


@loop
def compiled_optimizer() -> str:
    """Not counted: the compiler leaves nothing of the hooks. It must work all the same."""
    model, optimizer = made()
    step = torch.compile(optimizer.step, backend="eager")
    for _ in range(4):
        backward(model)
        step()
    return "worked"


@loop
def an_update_that_raises() -> int:
    model = nn.Linear(4, 1)

    class Broken(torch.optim.SGD):
        def step(self, closure: Any = None) -> None:  # type: ignore[override]
            raise MemoryError

    broken = Broken(model.parameters(), lr=0.1)
    for _ in range(3):
        backward(model)
        try:
            broken.step()
        except MemoryError:
            backward(model)
            broken.__class__ = torch.optim.SGD
            broken.step()
            broken.__class__ = Broken
    return 3


@loop
def validation_without_no_grad() -> int:
    model, optimizer = made()
    valid = loader(16)
    for _ in range(3):
        for start in range(0, 64, 8):
            backward(model, X[start : start + 8], Y[start : start + 8])
            optimizer.step()
        for x, _y in valid:
            model(x)
    return 24


@loop
def a_new_loader_every_epoch() -> int:
    model, optimizer = made()
    for _ in range(3):
        for x, y in loader():
            backward(model, x, y)
            optimizer.step()
    return 24


@loop
def two_loaders_side_by_side() -> int:
    model, optimizer = made()
    labelled, unlabelled = loader(16), loader(8)
    short = iter(labelled)
    for _ in range(2):
        for x, y in unlabelled:
            try:
                next(short)
            except StopIteration:
                short = iter(labelled)
                next(short)
            backward(model, x, y)
            optimizer.step()
    return 16


@loop
def sparse_and_empty_gradients() -> int:
    table = nn.Embedding(10, 4, sparse=True)
    optimizer = torch.optim.SparseAdam(table.parameters())
    for _ in range(5):
        table(torch.tensor([1, 2])).sum().backward()
        optimizer.step()
    _, unused = made()
    unused.step()  # another optimizer in the last round
    return 5


print(json.dumps(COUNTED))
