"""Metrics that become NaN while the loss is finite: told once by their name, and only where they had a number before."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import pytest

from tests.workplace import Workplace

torch = pytest.importorskip("torch")


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Any:
    """What is told, with the way to log something and a loss that is finite."""
    from holdfast.inside.torch import logged_metrics

    found: list[Any] = []
    notices = SimpleNamespace(lasting=0, tell=lambda facts, _scene: found.append(facts))
    looks = SimpleNamespace(notices=notices, recorder=SimpleNamespace(steps=7))
    monkeypatch.setattr(logged_metrics.hooks, "of_process", lambda: looks)
    return SimpleNamespace(found=found, notices=notices, log=logged_metrics.LoggedMetrics(torch).logged)


def test_a_metric_that_becomes_nan_is_told_once(told: Any) -> None:
    for value in (torch.tensor(0.5), 0.4, torch.tensor(math.nan), math.nan, math.inf):
        told.log("val_auc", value)
    (facts,) = told.found
    assert (facts["step"], facts["seen_in"], facts["origin"]) == (7, "metric", "unknown")
    assert facts["replay"].startswith("val_auc was logged as NaN, after numbers")


@pytest.mark.parametrize("name", ["train_loss", "grad_norm"])
def test_losses_and_gradients_are_looked_at_where_they_are_made(told: Any, name: str) -> None:
    told.log(name, 1.0)
    told.log(name, math.nan)
    assert told.found == []


def test_a_metric_without_a_number_from_the_start_is_nobodys_fault(told: Any) -> None:
    told.log("absent_class", math.nan)
    told.log("absent_class", math.nan)
    assert told.found == []


def test_nothing_is_told_while_the_loss_itself_is_not_finite(told: Any) -> None:
    told.log("val_auc", 0.5)
    told.notices.lasting = 1
    told.log("val_auc", math.nan)
    assert told.found == []


LIGHTNING = """
    import math, torch
    import lightning.pytorch as pl
    from torch.utils.data import DataLoader, TensorDataset

    class Model(pl.LightningModule):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def training_step(self, batch, number):
            x, y = batch
            loss = (self.layer(x) - y).square().mean()
            self.log("spread", torch.tensor(math.nan) if number == BAD else loss.detach().sqrt())
            self.log("absent", math.nan)
            return loss

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.01)

    x = torch.randn(320, 4)
    quiet = dict(enable_progress_bar=False, enable_model_summary=False, enable_checkpointing=False, logger=False)
    trainer = pl.Trainer(max_epochs=1, accelerator="cpu", **quiet)
    trainer.fit(Model(), DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8))
"""
HF = """
    import math, torch
    from transformers import Trainer, TrainingArguments

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(4, 1)

        def forward(self, x=None, labels=None):
            return {"loss": (self.layer(x) - labels).square().mean()}

    class Own(Trainer):
        def log(self, logs, *args, **kwargs):
            logs["spread"] = math.nan if self.state.global_step == BAD else 0.5
            logs["absent"] = math.nan
            super().log(logs, *args, **kwargs)

    rows = [{"x": torch.randn(4), "labels": torch.zeros(1)} for _ in range(320)]
    how = dict(per_device_train_batch_size=8, num_train_epochs=1, logging_steps=1, report_to=[], use_cpu=True)
    Own(Model(), TrainingArguments("out", save_strategy="no", disable_tqdm=True, **how), train_dataset=rows).train()
"""


@pytest.mark.slow
@pytest.mark.parametrize(("package", "text"), [("lightning", LIGHTNING), ("transformers", HF)])
@pytest.mark.parametrize("bad", [20, -1])
def test_it_is_among_what_was_noticed_and_nothing_else_is(
    workplace: Workplace, package: str, text: str, bad: int
) -> None:
    pytest.importorskip(package)
    done = workplace.run(workplace.script(text.replace("BAD", str(bad))))
    answer = workplace.why()
    assert (done.returncode, answer["outcome"]) == (0, "completed")  # not "recovered": nothing was done about it
    told = [item["text"] for one in answer["noticed"] for item in one["evidence"] if "was logged as" in item["text"]]
    assert [text.split()[0] for text in told] == (["spread"] if bad > 0 else [])
