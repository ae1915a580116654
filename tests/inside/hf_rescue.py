"""Hugging Face's Trainer, bare and rescued, case after case; prints how far apart. Memory runs out because a layer says so."""

from __future__ import annotations

import json
import os
import tempfile
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

import torch
import torch.utils.checkpoint
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
)
from transformers.trainer_callback import PrinterCallback

from holdfast.inside import start
from holdfast.inside.torch import adapter
from holdfast.inside.torch.loop_rescue import of_process
from tests.inside.lack_of_memory import Memory, Take, listening, said, told

torch.set_num_threads(1)
nn = torch.nn
PLACE = tempfile.mkdtemp()
random = torch.Generator().manual_seed(0)
WORDS = torch.randint(1, 30, (84, 9), generator=random)
LENGTHS = torch.randint(2, 10, (84,), generator=random)
LABELS = torch.where(torch.arange(9) < LENGTHS[:, None], WORDS, -100)


class Rows(torch.utils.data.Dataset[Any]):
    def __init__(self, tokens: bool) -> None:
        self.tokens = tokens

    def __len__(self) -> int:
        return len(WORDS)

    def __getitem__(self, index: int) -> dict[str, Any]:
        return {"input_ids": WORDS[index], "labels": LABELS[index] if self.tokens else WORDS[index].sum() % 3}


class Tagger(nn.Module):
    """A mean over the tokens that count, of which the Trainer knows nothing; three layers behind one that is costly."""

    def __init__(self, *between: Any, loss: Any = None) -> None:
        super().__init__()
        self.words, self.hidden, self.out = nn.Embedding(30, 8), nn.Linear(8, 16), nn.Linear(16, 30)
        self.between = nn.Sequential(*between)
        self.loss = loss or (lambda found, labels: nn.functional.cross_entropy(found.flatten(0, 1), labels.flatten()))

    def forward(self, input_ids: Any, labels: Any) -> Any:
        hidden = Take.apply(torch.tanh(self.hidden(self.words(input_ids))))
        found = self.out(self.between(hidden))
        return {"loss": self.loss(found, labels), "logits": found}


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.BatchNorm1d(16)

    def forward(self, x: Any) -> Any:
        return self.inner(x.transpose(1, 2)).transpose(1, 2)


class Shared(nn.Module):
    """One layer, used twice within checkpoints that enter the backward pass anew: its gradient comes in two parts."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(16, 16)

    def forward(self, x: Any) -> Any:
        once = torch.utils.checkpoint.checkpoint(self.inner, x, use_reentrant=True)
        return torch.utils.checkpoint.checkpoint(self.inner, Take.apply(once), use_reentrant=True)


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        if self.training:
            self.seen += x.mean()
        return x


def by_row(found: Any, labels: Any) -> Any:
    return torch.stack([nn.functional.cross_entropy(a, b) for a, b in zip(found, labels, strict=True)]).mean()


def added_up(found: Any, labels: Any) -> Any:
    return 0.01 * nn.functional.cross_entropy(found.flatten(0, 1), labels.flatten(), reduction="sum")


def two_means(found: Any, labels: Any) -> Any:
    """Over tokens and over rows: no share of a part is right for both."""
    return nn.functional.cross_entropy(found.flatten(0, 1), labels.flatten()) + (found**2).mean()


def contrastive(found: Any, _labels: Any) -> Any:
    vectors = found.mean(1)
    return nn.functional.cross_entropy(vectors @ vectors.T, torch.arange(len(vectors)))


def bert() -> Any:
    config = BertConfig(
        vocab_size=30, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, num_labels=3,
    )  # fmt: skip
    model = BertForSequenceClassification(config)
    model.bert.embeddings.register_forward_hook(lambda _module, _args, out: Take.apply(out))
    return model


def gpt2() -> Any:
    config = GPT2Config(
        vocab_size=30, n_embd=16, n_layer=2, n_head=2, n_positions=9, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
    model = GPT2LMHeadModel(config)
    model.transformer.h[0].register_forward_hook(
        lambda _module, _args, out: (Take.apply(out[0]), *out[1:]) if isinstance(out, tuple) else Take.apply(out)
    )
    return model


class OwnLoss(Trainer):
    def compute_loss(self, model: Any, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
        labels = inputs.pop("labels")
        found = model(input_ids=inputs["input_ids"], labels=labels)
        loss = 0.5 * found["loss"] + 0.1 * sum((p**2).sum() for p in model.parameters())
        return (loss, found) if return_outputs else loss


class OwnStep(Trainer):
    def training_step(self, model: Any, inputs: Any, *_: Any, **__: Any) -> Any:
        loss = self.compute_loss(model, self._prepare_inputs(inputs))
        loss.backward()
        return loss.detach()


class CallingStep(Trainer):
    """Two passes over each batch, and both count."""

    def training_step(self, *args: Any, **kwargs: Any) -> Any:
        return 0.5 * (super().training_step(*args, **kwargs) + super().training_step(*args, **kwargs))


class Seen(TrainerCallback):
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.logs: list[dict[str, float]] = []

    def on_log(self, _args: Any, _state: Any, _control: Any, logs: Any = None, **_: Any) -> None:
        self.logs.append(
            {name: value for name, value in logs.items() if name in ("loss", "learning_rate", "grad_norm")}
        )

    def on_substep_end(self, *_: Any, **__: Any) -> None:
        self.calls.append("substep")

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.calls.append("step")


def train(
    case: dict[str, Any], rows: int = 10**9, where: str = "backward", accumulate: int = 1, batch: int = 21
) -> dict[str, Any]:
    Memory.allow(rows, where)
    torch.manual_seed(1)
    model = case["model"]().double()
    began = torch.cat([value.double().flatten() for value in model.state_dict().values()])
    seen = Seen()
    how = {"label_smoothing_factor": 0.1} if case.get("smooth") else {}
    trainer = case.get("trainer", Trainer)(
        model=model,
        args=TrainingArguments(
            output_dir=PLACE, num_train_epochs=2, per_device_train_batch_size=batch, optim="sgd", learning_rate=0.1,
            gradient_accumulation_steps=accumulate, save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True,
            logging_steps=1, **how,
        ),
        train_dataset=Rows(case.get("tokens", True)),
        callbacks=[seen],
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)
    trainer.train()
    state = torch.cat([value.double().flatten() for value in model.state_dict().values()])
    return {
        "state": state - began,
        "logs": seen.logs,
        "calls": seen.calls,
        "steps": trainer.state.global_step,
        "refusals": Memory.refusals,
    }


CASES: dict[str, dict[str, Any]] = {
    "mean over tokens": {"model": Tagger},
    "mean over rows": {"model": lambda: Tagger(loss=by_row)},
    "added up": {"model": lambda: Tagger(loss=added_up)},
    "own compute_loss": {"model": Tagger, "trainer": OwnLoss},
    "own training_step": {"model": Tagger, "trainer": OwnStep},
    "two passes": {"model": Tagger, "trainer": CallingStep},
    "bert, mean over rows": {"model": bert, "tokens": False},
    "gpt2, number of items": {"model": gpt2},
    "gpt2, label smoothing": {"model": gpt2, "smooth": True},
}


def apart(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    logs = [
        abs(a[name] - b[name]) / max(abs(a[name]), 1e-3)
        for a, b in zip(one["logs"], other["logs"], strict=True)
        for name in a
    ]
    return {
        "apart": float((one["state"] - other["state"]).norm() / one["state"].norm()),
        "logs_apart": max(logs),
        "same_calls": one["calls"] == other["calls"] and one["steps"] == other["steps"],
        "refusals": other["refusals"],
    }


WAYS = (("backward", 1), ("forward", 2), ("backward", 2))
bare = {(name, accumulate): train(case, accumulate=accumulate) for name, case in CASES.items() for accumulate in (1, 2)}
NORMED = {"model": lambda: Tagger(Normed(), nn.Dropout(0.1))}
bare_normed = train(NORMED)
recorder = listening()
adapter.install(recorder)
start._install_trainer("transformers.trainer", recorder)
results: dict[str, Any] = {}
for name, case in CASES.items():
    found: dict[str, Any] = {}
    for accumulate in (1, 2):
        healthy = train(case, accumulate=accumulate)
        before = bare[name, accumulate]
        found[f"healthy {accumulate}"] = (
            bool((healthy["state"] == before["state"]).all()) and healthy["logs"] == before["logs"]
        )
    for where, accumulate in WAYS:
        pieces = train(case, 4, where, accumulate)
        found[f"{where} {accumulate}"] = apart(bare[name, accumulate], pieces)
    # From the second batch of an accumulation on: gradients are there already, and some are complete.
    Memory.spare = 1
    found["late"] = apart(bare[name, 2], train(case, 4, "backward", 2))
    Memory.spare = 0
    results[name] = found
quiet = said("inside.failed") + said("rescue.refused") + said("rescue.disclosed")
ks = sorted({data["k"] for kind, data in told if kind == "rescue.k"})
caught = next(data for kind, data in told if kind == "rescue.caught")

refused: dict[str, Any] = {}
REFUSED: dict[str, dict[str, Any]] = {
    "contrastive": {"model": lambda: Tagger(loss=contrastive)},
    "two means": {"model": lambda: Tagger(loss=two_means)},
    "a counting layer": {"model": lambda: Tagger(Counting())},
}
for name, case in REFUSED.items():
    told.clear()
    of_process(recorder, torch)._said.clear()  # each is said once
    try:
        train(case, 4)
        error = ""
    except torch.OutOfMemoryError as raised:
        error = str(raised) + "".join(getattr(raised, "__notes__", []))
    refused[name] = {"error": error, "reasons": said("rescue.refused"), "failed": said("inside.failed")}

# Two parts of a gradient that was there before: one of them may be in it.
told.clear()
Memory.spare = 2
try:
    train({"model": lambda: Tagger(Shared())}, 4, accumulate=2)
except torch.OutOfMemoryError as raised:
    refused["half of a gradient"] = {
        "error": str(raised),
        "reasons": said("rescue.refused"),
        "failed": said("inside.failed"),
    }
Memory.spare = 0

# Two rows, of which only one fits: its gradient cannot be tried in one piece, but its loss can.
told.clear()
narrow = apart(train(CASES["mean over tokens"], batch=2), train(CASES["mean over tokens"], 1, batch=2))
narrow["said"] = said("inside.failed") + said("rescue.refused")

# A run that was killed before begins in pieces, with no failure.
told.clear()
recorder.settings["rescue"]["k"] = 5
begun = apart(bare["mean over tokens", 2], train(CASES["mean over tokens"], accumulate=2))
begun["caught"], begun["ready"] = said("rescue.caught"), said("rescue.ready")
try:
    train(REFUSED["contrastive"], accumulate=2)
    begun["refused"] = said("rescue.refused")
finally:
    recorder.settings["rescue"]["k"] = None

told.clear()
whole, pieces = train(NORMED), train(NORMED, 4)
disclosed = {"texts": said("rescue.disclosed"), "apart": apart(whole, pieces), "failed": said("inside.failed")}
disclosed["healthy"] = bool((whole["state"] == bare_normed["state"]).all())
found_all = {"cases": results, "quiet": quiet, "ks": ks, "caught": caught, "refused": refused, "disclosed": disclosed}
print(json.dumps({**found_all, "narrow": narrow, "begun": begun}))
