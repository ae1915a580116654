"""What is run once more to be looked at leaves a model as it was, also what its forward pass moves on."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from holdfast.inside.torch.module_attributes import attributes_put_back  # noqa: E402
from holdfast.inside.torch.numerics.setup_facts import has_weight  # noqa: E402
from holdfast.inside.torch.step_undo import StepUndo, buffers_put_back  # noqa: E402


class Averaging(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 3))
        self.batches = torch.nn.BatchNorm1d(3)
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, rows: Any) -> Any:
        found = self.batches(self.norm(rows))
        self.mean = 0.9 * self.mean + 0.1 * found.detach().mean(0)
        self.seen += 1
        return found


def test_buffers_of_all_kinds_are_put_back() -> None:
    model = Averaging()
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    mean = model.mean
    with buffers_put_back(torch, model), StepUndo(torch, model).unchanged():
        model(torch.randn(4, 3))
    assert model.mean is mean
    assert all(torch.equal(buffer, before[name]) for name, buffer in model.named_buffers())


def test_a_weight_that_is_computed_is_known_without_computing_it() -> None:
    layer = torch.nn.utils.parametrizations.spectral_norm(torch.nn.Linear(3, 3))
    before = [buffer.clone() for buffer in layer.buffers()]
    assert has_weight(torch, layer) and not has_weight(torch, torch.nn.ReLU())
    assert before and [buffer.tolist() for buffer in layer.buffers()] == [buffer.tolist() for buffer in before]


class Meter:
    values = 0


class Remembering(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.state, self.total = torch.zeros(3), torch.zeros(3)
        self.counts, self.recent, self.seen, self.meter = {"calls": 0}, [0, 0], set(), Meter()

    def forward(self, rows: Any) -> Any:
        self.state = self.state + rows.mean(0)
        self.total += rows.sum(0)
        self.counts["calls"] += 1
        self.recent[self.counts["calls"] % 2] = self.counts["calls"]
        self.seen.add(self.counts["calls"])
        self.last = rows
        self.meter.values += 1
        return rows * self.state


def test_attributes_that_a_forward_pass_moves_on_are_put_back() -> None:
    model = Remembering()
    model(torch.ones(2, 3))
    state, last = model.state, model.last
    with attributes_put_back(model):
        model(torch.randn(2, 3))
        model.late = 1
    assert model.state is state and model.last is last and not hasattr(model, "late")
    assert (
        model.total.tolist() == [2, 2, 2]
        and model.recent == [0, 1]
        and model.seen == model.counts.keys() - {"calls"} | {1}
    )


class Counting(torch.nn.Module):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.layer = torch.nn.utils.spectral_norm(torch.nn.Linear(4, 3))
        self.register_buffer("seen", torch.ones(3))

    def forward(self, rows: Any) -> Any:
        self.seen += 1
        return self.layer(rows) * self.seen.clone()


def test_no_graph_of_an_earlier_pass_takes_it_for_a_change() -> None:
    model = Counting()
    held, rows = model.seen, torch.randn(5, 4)
    loss = (model.layer(rows) * held).sum()  # has the buffer saved
    weight = model.layer.weight
    before = {name: buffer.clone() for name, buffer in model.named_buffers()}
    with buffers_put_back(torch, model), attributes_put_back(model), torch.no_grad():
        model(rows)
        assert model.seen[0] == 2.0
    assert model.seen is held and model.layer.weight is weight
    assert all(torch.equal(buffer, before[name]) for name, buffer in model.named_buffers())
    loss.backward()
