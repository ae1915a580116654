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


def rescue_of(model: Any, refused: str = "") -> tuple[Any, Told]:
    """What a trainer has of one model."""
    import torch

    from holdfast.inside.telemetry import Recorder
    from holdfast.inside.torch.batch_function import LossFunction
    from holdfast.inside.torch.loop_rescue import LoopRescue, RescuedModule
    from tests.inside.lack_of_memory import Ring

    class Noting(Ring):
        def text(self, kind: str, at: float, **data: Any) -> None:
            told.text(kind, at, **data)

    told = Told()
    recorder = Recorder(Noting(), {"policy": "protect", "rescue": {"k": None}})  # type: ignore[arg-type]
    rescue = LoopRescue(recorder, torch, torch.nn.Module.__call__)
    return RescuedModule(rescue, LossFunction(model, lambda: None), refused), told


def train_step(known: Any, model: Any, batch: Any, loss_of: Any, mixed: bool = False) -> Any:
    """A trainer in six lines; returns its loss."""
    import torch

    from holdfast.inside.torch.batch_function import LossFunction
    from holdfast.inside.torch.module_hooks import rescued_backward
    from holdfast.inside.user_errors import passing

    def compute_loss(batch: Any) -> Any:
        with torch.autocast("cpu", torch.bfloat16) if mixed else contextlib.nullcontext():
            return loss_of(model(batch["x"]), batch)

    rescue = known._rescue
    with passing:
        loss = rescue.run(known, LossFunction(model, compute_loss, mixed), (batch,), {})
        rescued_backward(rescue, loss)
    return float(loss.detach())


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
        known, told = rescue_of(model)
        train_step(known, model, batch, loss_of, mixed=precision == "mixed")
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
        known, told = rescue_of(model)
        for wanted in (labels, some):
            Memory.allow(rows)
            model.zero_grad()
            train_step(known, model, {"x": x, "labels": wanted}, over_tokens)
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
        known, _ = rescue_of(model)
        train_step(known, model, {"x": x, "y": y}, over_labelled)
        found.append(gradients(model))
    assert float((found[0] - found[1]).norm() / found[0].norm()) < 1e-5


def test_statistics_are_updated_once_a_batch_and_not_by_what_failed() -> None:
    import torch

    from tests.inside.lack_of_memory import Memory

    states = []
    for rows in (10**9, 4):
        Memory.allow(rows)
        model, x = made("normed")
        known, _ = rescue_of(model)
        train_step(known, model, {"x": x, "y": torch.arange(21) % 5}, entropy)
        states.append(model[0])
    assert int(states[0].num_batches_tracked) == int(states[1].num_batches_tracked) == 1
    assert torch.allclose(states[0].running_mean, states[1].running_mean, atol=1e-6)


def test_another_error_is_the_users_and_no_row_too_many_is_a_reason() -> None:
    import torch

    from tests.inside.lack_of_memory import Memory

    model, x = made("dense")
    known, told = rescue_of(model)
    batch = {"x": x, "y": torch.arange(21) % 5}
    with pytest.raises(ZeroDivisionError) as raised:
        train_step(known, model, batch, lambda *_: 1 / 0)
    assert {frame.filename for frame in traceback.extract_tb(raised.value.__traceback__)} == {__file__}, "none of ours"
    Memory.allow(0)
    random = torch.get_rng_state()
    with pytest.raises(torch.OutOfMemoryError):
        train_step(known, model, batch, entropy)
    assert told.reasons() == ["one row at a time does not fit"]
    assert all(parameter.grad is None for parameter in model.parameters())
    assert bool((torch.get_rng_state() == random).all())
    Memory.allow(10**9)
    train_step(known, model, batch, entropy)


def test_what_is_left_alone_is_said_once_and_fails_as_it_always_did() -> None:
    import torch

    from tests.inside.lack_of_memory import Memory

    model, x = made("dense")
    known, told = rescue_of(model, "training on several devices is left as it is")
    Memory.allow(4, "forward")
    for _ in range(2):
        with pytest.raises(torch.OutOfMemoryError) as raised:
            train_step(known, model, {"x": x, "y": torch.arange(21) % 5}, entropy)
        assert "lack_of_memory.py" in "".join(traceback.format_exception(raised.value))
    assert told.reasons() == ["training on several devices is left as it is"]


def test_what_a_step_keeps_on_its_model_is_kept_once_for_each_piece() -> None:
    import torch

    from tests.inside.lack_of_memory import Memory

    model, x = made("dense")
    model.losses, model.rows = [], 0
    known, told = rescue_of(model)

    def kept(found: Any, batch: Any) -> Any:
        loss = entropy(found, batch)
        model.losses.append(float(loss.detach()))
        model.rows += len(found)
        return loss

    Memory.allow(4, "forward")
    train_step(known, model, {"x": x, "y": torch.arange(21) % 5}, kept)
    assert told.reasons() == [] and len(model.losses) == 7 and model.rows == 21


def test_a_penalty_on_gradients_within_the_loss_is_split_too() -> None:
    import torch

    from tests.inside.lack_of_memory import Memory

    found = []
    for rows in (10**9, 4):
        Memory.allow(rows)
        model, x = made("dense")
        known, told = rescue_of(model)

        def penalised(_found: Any, batch: Any, model: Any = model) -> Any:
            inputs = batch["x"].detach().requires_grad_()
            (slope,) = torch.autograd.grad(model[0](inputs).tanh().sum(), inputs, create_graph=True)
            return entropy(_found, batch) + (slope**2).sum(1).mean()

        train_step(known, model, {"x": x, "y": torch.arange(21) % 5}, penalised)
        assert told.reasons() == []
        found.append(gradients(model))
    assert float((found[0] - found[1]).norm() / found[0].norm()) < 1e-5


@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("accumulated", [False, True])
def test_checkpoints_that_enter_the_backward_pass_anew(shared: bool, accumulated: bool) -> None:
    """A layer that is used in two of them gets its gradient in two parts, of which one may be there: that is refused."""
    import torch
    from torch.utils.checkpoint import checkpoint

    from tests.inside.lack_of_memory import Memory, Take

    class Checkpointed(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.one = torch.nn.Linear(16, 16), torch.nn.Linear(16, 16)
            self.other = self.one if shared else torch.nn.Linear(16, 16)

        def forward(self, x: Any) -> Any:
            once = checkpoint(self.one, self.first(x), use_reentrant=True)
            return checkpoint(self.other, Take.apply(once), use_reentrant=True)

    found = []
    for rows in (10**9, 4):
        torch.manual_seed(3)
        model, batch = Checkpointed(), {"x": torch.randn(21, 16), "y": torch.arange(21) % 5}
        known, told = rescue_of(model)
        Memory.allow(10**9)
        if accumulated:
            train_step(known, model, batch, entropy)
        Memory.allow(rows)
        if shared and rows == 4:
            with pytest.raises(torch.OutOfMemoryError):
                train_step(known, model, batch, entropy)
            assert "half changed" in told.reasons()[0]
            return
        train_step(known, model, batch, entropy)
        assert told.reasons() == []
        found.append(gradients(model))
    assert float((found[0] - found[1]).norm() / found[0].norm()) < 1e-5
