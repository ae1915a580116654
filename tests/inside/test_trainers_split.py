"""What the rescued trainers share, by itself: shares that are told apart, no trace of a failure, statistics once a batch."""

from __future__ import annotations

import contextlib
import traceback
from importlib.util import find_spec
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="needs PyTorch")


class Told:
    """A ring that keeps what it is told."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []

    def text(self, kind: str, _at: float, **data: Any) -> None:
        self.events.append((kind, data))

    def reasons(self) -> list[str]:
        return [data["reason"] for kind, data in self.events if kind == "rescue.refused"]


def split_of(model: Any) -> tuple[Any, Told]:
    from holdfast.inside.telemetry import Recorder
    from holdfast.inside.torch.batch_split import Split

    told = Told()
    return Split(Recorder(told, {"policy": "protect", "rescue": {"k": None}}), model), told  # type: ignore[arg-type]


def plain_step(model: Any, batch: Any, loss_of: Any, mixed: bool = False) -> Any:
    """A trainer in six lines."""
    import torch

    from holdfast.inside.torch.batch_split import Step

    def loss(batch: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16) if mixed else contextlib.nullcontext():
            return loss_of(model(batch["x"]), batch)

    class Plain(Step):
        def __init__(self) -> None:
            self.model, self.batch, self.mixed, self.total = model, batch, mixed, 0.0

        def whole(self) -> Any:
            found = loss(self.batch)
            found.backward()
            return float(found.detach())

        def piece(self, batch: Any, share: float) -> None:
            found = loss(batch) * share
            found.backward()
            self.total += float(found.detach())

        def ends(self, *_: Any) -> Any:
            return self.total

        def trial(self, batch: Any, gradients: bool) -> Any:
            with torch.set_grad_enabled(gradients):
                found = loss(batch)
            if gradients:
                found.backward()
            return found

    return Plain()


def gradients(model: Any) -> Any:
    import torch

    return torch.cat([p.grad.double().flatten() for p in model.parameters() if p.grad is not None])


def made(kind: str) -> tuple[Any, Any]:
    import torch

    from tests.inside.lack_of_memory import Take

    class Costly(torch.nn.Module):
        def forward(self, x: Any) -> Any:
            return Take.apply(x)

    nn = torch.nn
    torch.set_num_threads(1)
    torch.manual_seed(3)
    if kind == "convolution":
        layers = [nn.Conv2d(3, 16, 3), nn.ReLU(), Costly(), nn.Conv2d(16, 16, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1)]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(16, 5)), torch.randn(21, 3, 16, 16)
    if kind == "attention":
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.0, batch_first=True)
        return nn.Sequential(layer, Costly(), layer, nn.Flatten(), nn.Linear(32 * 6, 5)), torch.randn(21, 6, 32)
    normed = [nn.BatchNorm1d(16)] if kind == "normed" else []
    return nn.Sequential(*normed, nn.Linear(16, 16), nn.Tanh(), Costly(), nn.Linear(16, 5)), torch.randn(21, 16)


def entropy(found: Any, batch: Any) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(found.float(), batch["y"])


def whole_and_pieces(kind: str, precision: str, loss_of: Any) -> tuple[Any, Any, Told]:
    import torch

    from tests.inside.lack_of_memory import Memory

    found = []
    for rows in (10**9, 4):
        Memory.allow(rows)
        model, x = made(kind)
        if precision == "half":
            model, x = model.bfloat16(), x.bfloat16()
        batch = {"x": x, "y": torch.arange(21) % 5, "w": torch.linspace(0.1, 2.0, 21)}
        split, told = split_of(model)
        split.run(plain_step(model, batch, loss_of, mixed=precision == "mixed"))
        found.append(gradients(model))
    return found[0], found[1], told


@pytest.mark.parametrize("precision", ["single", "half", "mixed"])
@pytest.mark.parametrize("kind", ["dense", "convolution", "attention"])
def test_a_mean_is_recognised_in_any_precision(kind: str, precision: str) -> None:
    whole, pieces, told = whole_and_pieces(kind, precision, entropy)
    assert told.reasons() == []
    assert float((whole - pieces).norm() / whole.norm()) < (1e-5 if precision == "single" else 2e-2)


def weighted(found: Any, batch: Any) -> Any:
    import torch

    each = torch.nn.functional.cross_entropy(found.float(), batch["y"], reduction="none")
    return (each * batch["w"]).sum() / batch["w"].sum()


def added_up(found: Any, batch: Any) -> Any:
    import torch

    return torch.nn.functional.cross_entropy(found.float(), batch["y"], reduction="sum")


@pytest.mark.parametrize("precision", ["single", "mixed"])
@pytest.mark.parametrize("loss_of", [weighted, added_up])
def test_other_shares_than_those_of_rows_are_recognised(loss_of: Any, precision: str) -> None:
    whole, pieces, told = whole_and_pieces("dense", precision, loss_of)
    assert told.reasons() == []
    assert float((whole - pieces).norm() / whole.norm()) < (1e-5 if precision == "single" else 2e-2)


def ranked(found: Any, batch: Any) -> Any:
    """Each row against the mean of all: over the whole batch, if only a little."""
    return entropy(found, batch) + 0.05 * ((found - found.mean(0)).float() ** 2).mean()


@pytest.mark.parametrize(("kind", "precision"), [("dense", "single"), ("attention", "half"), ("attention", "mixed")])
def test_a_loss_that_is_over_the_whole_batch_only_in_part_is_refused(kind: str, precision: str) -> None:
    import torch

    with pytest.raises(torch.OutOfMemoryError):
        whole_and_pieces(kind, precision, ranked)


def test_a_mean_over_rows_and_one_over_tokens_are_told_apart_once_they_differ() -> None:
    """In the first batch every token counts, so both would do; the second has rows in which few count."""
    import torch

    from tests.inside.lack_of_memory import Memory

    def over_tokens(found: Any, batch: Any) -> Any:
        wanted = batch["labels"]
        return torch.nn.functional.cross_entropy(found.unsqueeze(2).expand(-1, -1, wanted.shape[1]), wanted)

    labels = torch.arange(21 * 7).reshape(21, 7) % 5
    some = torch.where(torch.arange(7) < 1 + torch.arange(21)[:, None] % 7, labels, -100)
    found = []
    for rows in (10**9, 4):
        model, x = made("dense")
        split, told = split_of(model)
        for wanted in (labels, some):
            Memory.allow(rows)
            model.zero_grad()
            split.run(plain_step(model, {"x": x, "labels": wanted}, over_tokens))
        found.append(gradients(model))
    assert told.reasons() == []
    assert float((found[0] - found[1]).norm() / found[0].norm()) < 1e-5


def test_a_part_in_which_nothing_counts_is_no_part() -> None:
    import torch

    from tests.inside.lack_of_memory import Memory

    def over_labelled(found: Any, batch: Any) -> Any:
        return torch.nn.functional.cross_entropy(found, batch["y"], ignore_index=-100)

    y = torch.where(torch.arange(21) % 21 < 9, torch.arange(21) % 5, -100)
    found = []
    for rows in (10**9, 3):
        Memory.allow(rows)
        model, x = made("dense")
        split, _ = split_of(model)
        split.run(plain_step(model, {"x": x, "y": y}, over_labelled))
        found.append(gradients(model))
    assert float((found[0] - found[1]).norm() / found[0].norm()) < 1e-5


def test_statistics_are_updated_once_a_batch_and_not_by_what_failed() -> None:
    import torch

    from tests.inside.lack_of_memory import Memory

    states = []
    for rows in (10**9, 4):
        Memory.allow(rows)
        model, x = made("normed")
        split, _ = split_of(model)
        split.run(plain_step(model, {"x": x, "y": torch.arange(21) % 5}, entropy))
        states.append(model[0])
    assert int(states[0].num_batches_tracked) == int(states[1].num_batches_tracked) == 1
    assert torch.allclose(states[0].running_mean, states[1].running_mean, atol=1e-6)


def test_another_error_is_the_users_and_no_row_too_many_is_a_reason() -> None:
    import torch

    from tests.inside.lack_of_memory import Memory

    model, x = made("dense")
    split, told = split_of(model)
    batch = {"x": x, "y": torch.arange(21) % 5}
    with pytest.raises(ZeroDivisionError) as raised:
        split.run(plain_step(model, batch, lambda *_: 1 / 0))
    assert {frame.filename for frame in traceback.extract_tb(raised.value.__traceback__)} == {__file__}, "none of ours"
    Memory.allow(0)
    random = torch.get_rng_state()
    with pytest.raises(torch.OutOfMemoryError):
        split.run(plain_step(model, batch, entropy))
    assert told.reasons() == ["one row at a time does not fit"]
    assert all(parameter.grad is None for parameter in model.parameters())
    assert bool((torch.get_rng_state() == random).all())
    Memory.allow(10**9)
    split.run(plain_step(model, batch, entropy))


def test_what_is_left_alone_is_said_once_and_fails_as_it_always_did() -> None:
    import torch

    from holdfast.inside.torch.batch_split import Split
    from tests.inside.lack_of_memory import Memory

    model, x = made("dense")
    one, told = split_of(model)
    split = Split(one._recorder, model, "training on several devices is left as it is")
    Memory.allow(4)
    for _ in range(2):
        with pytest.raises(torch.OutOfMemoryError) as raised:
            split.run(plain_step(model, {"x": x, "y": torch.arange(21) % 5}, entropy))
        assert "lack_of_memory.py" in "".join(traceback.format_exception(raised.value))
    assert told.reasons() == ["training on several devices is left as it is"]


def test_a_longer_row_begins_where_the_shorter_ones_are() -> None:
    from holdfast.inside.torch.batch_split import _ByLength

    pieces = _ByLength()
    assert pieces.count(32, ((100,),)) == 1
    pieces.did_not_fit(32, ((100,),), 1)
    assert pieces.count(32, ((100,),)) == 2
    assert pieces.count(32, ((200,),)) == 4
    assert pieces.count(32, ((50,),)) == 1
