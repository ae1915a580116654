"""Lightning's Trainer, bare and rescued, case after case; prints how far apart. Memory runs out because a layer says so."""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"

import torch
import torchmetrics

from holdfast.inside import start
from holdfast.inside.torch import adapter
from tests.inside.lack_of_memory import Memory, Take, listening, said, told

pl: Any = importlib.import_module(sys.argv[1])  # lightning.pytorch, or pytorch_lightning
logging.disable(logging.WARNING)
torch.set_num_threads(1)
nn = torch.nn
random = torch.Generator().manual_seed(0)
X = torch.randn(84, 6, generator=random, dtype=torch.float64)
Y = torch.randint(0, 3, (84,), generator=random)
W = torch.rand(84, generator=random, dtype=torch.float64)
WORDS = torch.randint(1, 30, (84, 9), generator=random)
WORDS = torch.where(torch.arange(9) < torch.randint(2, 10, (84, 1), generator=random), WORDS, 0)
functional = nn.functional


class Model(pl.LightningModule):
    def __init__(self, *between: Any, how: str = "mean") -> None:
        super().__init__()
        self.first, self.last, self.how = nn.Linear(6, 16), nn.Linear(16, 3), how
        self.between = nn.Sequential(*between)
        self.right = torchmetrics.MeanMetric()
        self.seen: list[str] = []

    def forward(self, x: Any) -> Any:
        return self.last(self.between(Take.apply(torch.tanh(self.first(x)))))

    def training_step(self, batch: Any, _number: int) -> Any:
        x, y, w, _ = batch
        found = self(x)
        if self.how == "weighted":
            loss = (functional.cross_entropy(found, y, reduction="none") * w).sum() / w.sum()
        else:
            loss = functional.cross_entropy(found, y, reduction=self.how)
        right = (found.argmax(1) == y).double()
        self.right(right)
        self.log("loss", loss, on_step=True, on_epoch=True)
        self.log("right", right.mean(), on_step=True, on_epoch=True)
        self.log("hits", right.sum(), on_step=True, on_epoch=True, reduce_fx="sum")
        self.log("metric", self.right, on_step=False, on_epoch=True)
        return {"loss": loss, "found": found.detach()}

    def on_before_backward(self, _loss: Any) -> None:
        self.seen.append("before backward")

    def on_after_backward(self) -> None:
        self.seen.append(f"after backward {sum(p.grad is not None for p in self.parameters())}")

    def on_before_zero_grad(self, _optimizer: Any) -> None:
        self.seen.append("before zero grad")

    def on_train_batch_end(self, outputs: Any, batch: Any, batch_idx: int) -> None:
        self.seen.append(f"end {len((outputs or {}).get('found', ()))} {batch_idx}")

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.SGD(self.parameters(), lr=0.1, momentum=0.9)
        return [optimizer], [{"scheduler": torch.optim.lr_scheduler.StepLR(optimizer, 3, 0.5), "interval": "step"}]


class Tagger(Model):
    """A mean over tokens that are no padding, in a batch that is a dictionary."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.out = nn.Embedding(30, 8), nn.Linear(8, 30)

    def training_step(self, batch: Any, _number: int) -> Any:
        words = batch["words"][0]
        assert len(batch["names"]) == len(words)
        found = self.out(Take.apply(self.words(words)))[:, :-1]
        loss = functional.cross_entropy(found.flatten(0, 1), words[:, 1:].flatten(), ignore_index=0)
        self.log("loss", loss, on_step=True, on_epoch=True)
        self.log("longest", (words != 0).sum(1).max().double(), reduce_fx="max", on_step=True, on_epoch=True)
        return {"loss": loss, "found": words}


class Contrastive(Model):
    def training_step(self, batch: Any, _number: int) -> Any:
        found = self(batch[0])
        return functional.cross_entropy(found @ found.T, torch.arange(len(found)))


class Odd(Model):
    """Logs what no putting together of parts gives."""

    def training_step(self, batch: Any, _number: int) -> Any:
        found = self(batch[0])
        self.log("spread", found.std(), on_step=True)
        return functional.cross_entropy(found, batch[1])


class Manual(Model):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False

    def training_step(self, batch: Any, _number: int) -> Any:
        optimizer: Any = self.optimizers()
        optimizer.zero_grad()
        self.manual_backward(functional.cross_entropy(self(batch[0]), batch[1]))
        optimizer.step()


def in_dictionary(rows: Any) -> Any:
    words = torch.stack([row[3] for row in rows])
    return {"words": (words,), "names": [f"row {number}" for number in range(len(rows))]}


class Seen(pl.Callback):
    def __init__(self) -> None:
        self.logged: list[dict[str, float]] = []
        self.rates: list[float] = []

    def on_train_batch_end(self, trainer: Any, *_: Any) -> None:
        self.logged.append({name: float(value) for name, value in trainer.logged_metrics.items()})
        self.rates.append(trainer.optimizers[0].param_groups[0]["lr"])

    def on_train_end(self, trainer: Any, *_: Any) -> None:
        self.logged.append({name: float(value) for name, value in trainer.callback_metrics.items()})


def train(make: Any, rows: int = 10**9, where: str = "backward", accumulate: int = 1, **how: Any) -> dict[str, Any]:
    Memory.allow(rows, where)
    torch.manual_seed(1)
    model, seen = make().double(), Seen()
    began = torch.cat([value.double().flatten() for value in model.state_dict().values()])
    trainer = pl.Trainer(
        max_epochs=2, accelerator="cpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False, accumulate_grad_batches=accumulate, callbacks=[seen], log_every_n_steps=1, **how,
    )  # fmt: skip
    data = torch.utils.data.TensorDataset(X, Y, W, WORDS)
    collate = in_dictionary if isinstance(model, Tagger) else None
    trainer.fit(model, torch.utils.data.DataLoader(data, batch_size=21, shuffle=True, collate_fn=collate))
    state = torch.cat([value.double().flatten() for value in model.state_dict().values()])
    return {
        "state": state - began, "logged": seen.logged, "rates": seen.rates, "steps": trainer.global_step,
        "seen": model.seen, "refusals": Memory.refusals,
    }  # fmt: skip


CASES: dict[str, Any] = {
    "mean": Model,
    "sum": lambda: Model(how="sum"),
    "sample weights": lambda: Model(how="weighted"),
    "mean over tokens": Tagger,
}


def apart(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    logs = [
        (abs(a[name] - b[name]) / max(abs(a[name]), 1e-3), name)
        for a, b in zip(one["logged"], other["logged"], strict=True)
        for name in a
    ]
    return {
        "apart": float((one["state"] - other["state"]).norm() / one["state"].norm()),
        "logs_apart": max(logs, default=(0.0, ""))[0],
        "most_apart": max(logs, default=(0.0, ""))[1],
        "same_calls": all(one[name] == other[name] for name in ("rates", "steps", "seen")),
        "refusals": other["refusals"],
    }


WAYS = (("backward", 1), ("forward", 2), ("backward", 2))
bare = {(name, accumulate): train(case, accumulate=accumulate) for name, case in CASES.items() for accumulate in (1, 2)}
clipped, manual = train(Model, gradient_clip_val=0.1), train(Manual)
contrastive = train(Contrastive)
bare_normed = train(lambda: Model(nn.BatchNorm1d(16), nn.Dropout(0.1)))
recorder = listening()
adapter.install(recorder)
start._install_trainer(f"{pl.__name__}.loops.optimization.automatic", recorder)
results: dict[str, Any] = {}
for name, case in CASES.items():
    found: dict[str, Any] = {}
    for accumulate in (1, 2):
        healthy, before = train(case, accumulate=accumulate), bare[name, accumulate]
        found[f"healthy {accumulate}"] = bool((healthy["state"] == before["state"]).all()) and all(
            healthy[key] == before[key] for key in ("logged", "rates", "steps", "seen")
        )
    for where, accumulate in WAYS:
        found[f"{where} {accumulate}"] = apart(bare[name, accumulate], train(case, 4, where, accumulate))
    Memory.spare = 1
    found["late"] = apart(bare[name, 2], train(case, 4, "backward", 2))
    Memory.spare = 0
    results[name] = found
results["mean"]["clipped"] = apart(clipped, train(Model, 4, gradient_clip_val=0.1))
for where in ("forward", "backward"):
    results["mean"][f"manual, {where}"] = apart(manual, train(Manual, 4, where))
quiet = said("inside.failed") + said("rescue.refused") + said("rescue.disclosed")
ks = sorted({data["k"] for kind, data in told if kind == "rescue.k"})
caught = next(data for kind, data in told if kind == "rescue.caught")

refused: dict[str, Any] = {}
told.clear()
try:
    train(Contrastive, 4)
    error = ""
except torch.OutOfMemoryError as raised:
    error = str(raised)
refused["contrastive"] = {"error": error, "reasons": said("rescue.refused"), "failed": said("inside.failed")}
# Where memory runs out in the forward pass, the calls of its modules can be cut; the loss is computed over all rows.
by_modules = apart(contrastive, train(Contrastive, 4, "forward"))

told.clear()
whole = train(lambda: Model(nn.BatchNorm1d(16), nn.Dropout(0.1)))
pieces = train(lambda: Model(nn.BatchNorm1d(16), nn.Dropout(0.1)), 4)
disclosed = {
    "texts": said("rescue.disclosed"),
    "failed": said("inside.failed"),
    "steps": [whole["steps"], pieces["steps"]],
}
disclosed["healthy"] = bool((whole["state"] == bare_normed["state"]).all())
told.clear()
train(Odd, 4)
odd = said("rescue.disclosed")
print(
    json.dumps(
        {
            "cases": results,
            "quiet": quiet,
            "ks": ks,
            "caught": caught,
            "refused": refused,
            "disclosed": disclosed,
            "odd": odd,
            "by_modules": by_modules,
        }
    )
)
