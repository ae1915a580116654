"""Hugging Face's Trainer as people use it, to be killed and gone on with; knows nothing of Holdfast. `resume_hf.py KIND`"""

import dataclasses
import hashlib
import json
import os
import random
import sys
import time
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
warnings.filterwarnings("ignore")

import numpy as np
import torch
from accelerate import Accelerator
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset
from transformers import EarlyStoppingCallback, Trainer, TrainerCallback, TrainingArguments
from transformers.trainer_utils import get_last_checkpoint

SAMPLES, BATCH, EPOCHS = 400, 16, int(os.environ.get("EPOCHS", "8"))
WORK = os.environ.get("WORK", "work")
PAUSE_S = float(os.environ.get("STEP_PAUSE_S", "0.006"))
random.seed(4)
np.random.seed(4)
torch.manual_seed(4)
torch.set_num_threads(1)
x, y = torch.randn(SAMPLES, 8), torch.randn(SAMPLES, 1)


def paced():
    if not os.path.exists("training"):
        open("training", "w").close()
    time.sleep(PAUSE_S)


class Noisy(Dataset):
    def __len__(self):
        return SAMPLES

    def __getitem__(self, i):
        noise = 0.1 * torch.randn(8) + float(np.random.normal(scale=0.01)) + random.random() * 0.01
        return {"x": x[i] + noise, "labels": y[i]}


class Held(Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, i):
        return {"x": x[i] * 0.9, "labels": y[i]}


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(SAMPLES):
            yield {"x": x[i] + 0.1 * random.random(), "labels": y[i]}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.2), nn.BatchNorm1d(32), nn.Linear(32, 1))

    def forward(self, x, labels=None):
        found = self.layers(x)
        return {"loss": F.mse_loss(found, labels), "logits": found}


class Remembering(TrainerCallback):
    """Keeps what it is told, as people's own callbacks do: in lists, and nothing is exported."""

    def __init__(self):
        self.steps, self.logs, self.saves = 0, [], []

    def on_step_end(self, args, state, control, **_):
        self.steps += 1
        paced()

    def on_log(self, args, state, control, logs=None, **_):
        self.logs.append({k: v for k, v in logs.items() if "runtime" not in k and "per_second" not in k})

    def on_save(self, args, state, control, **_):
        self.saves.append(state.global_step)


def arguments(**options):
    standard = {"num_train_epochs": EPOCHS, "per_device_train_batch_size": BATCH, "logging_steps": 7, "report_to": []}
    standard |= {"use_cpu": True, "disable_tqdm": True, "save_strategy": "no", "seed": 11, "learning_rate": 1e-2}
    known = {field.name for field in dataclasses.fields(TrainingArguments)}
    if "eval_strategy" in options and "eval_strategy" not in known:  # before 4.41
        options["evaluation_strategy"] = options.pop("eval_strategy")
    return TrainingArguments(WORK, **{**standard, **options})


def told(trainer, callback, result):
    history = [
        {k: v for k, v in one.items() if "runtime" not in k and "per_second" not in k}
        for one in trainer.state.log_history
    ]
    best = [trainer.state.best_metric, os.path.basename(trainer.state.best_model_checkpoint or "")]
    kept = sorted(os.listdir(WORK)) if os.path.isdir(WORK) else []
    counts = [callback.steps, callback.saves, trainer.state.global_step, trainer.state.epoch, result.global_step]
    return [
        history,
        callback.logs,
        counts,
        result.training_loss,
        best,
        [one for one in kept if one.startswith("check")],
    ]


def hf_plain():
    """Evaluation in between, a schedule with warmup, clipping; the data set draws its noise in the process."""
    model, callback = Model(), Remembering()
    args = arguments(eval_strategy="epoch", warmup_steps=20, lr_scheduler_type="cosine", max_grad_norm=0.5)
    trainer = Trainer(model, args, train_dataset=Noisy(), eval_dataset=Held(), callbacks=[callback])
    result = trainer.train()
    return [model], told(trainer, callback, result)


def hf_accumulation():
    """25 batches an epoch, three to an update: the last update of an epoch has one."""
    model, callback = Model(), Remembering()
    args = arguments(gradient_accumulation_steps=3, num_train_epochs=EPOCHS * 2)
    trainer = Trainer(model, args, train_dataset=Noisy(), callbacks=[callback])
    result = trainer.train()
    return [model], told(trainer, callback, result)


def hf_workers():
    model, callback = Model(), Remembering()
    args = arguments(dataloader_num_workers=2, optim="adafactor", lr_scheduler_type="constant")
    trainer = Trainer(model, args, train_dataset=Noisy(), callbacks=[callback])
    result = trainer.train()
    return [model], told(trainer, callback, result)


def hf_early_stopping():
    """Its own checkpoints, of which the best one is loaded in the end; training ends when nothing gets better."""
    model, callback = Model(), Remembering()
    args = arguments(
        eval_strategy="steps", eval_steps=12, save_strategy="steps", save_steps=12, save_total_limit=2,
        load_best_model_at_end=True, metric_for_best_model="eval_loss", greater_is_better=False, num_train_epochs=EPOCHS * 4,
    )  # fmt: skip
    stopping = EarlyStoppingCallback(early_stopping_patience=6)
    trainer = Trainer(model, args, train_dataset=Noisy(), eval_dataset=Held(), callbacks=[callback, stopping])
    result = trainer.train()
    return [model], told(trainer, callback, result)


class OwnTrainer(Trainer):
    """A loss of its own, and a memory of its own."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.worst, self.average = 0.0, None

    def compute_loss(self, model, inputs, return_outputs=False, **_):
        outputs = model(inputs["x"], inputs["labels"])
        loss = F.l1_loss(outputs["logits"].float(), inputs["labels"]) + 0.1 * outputs["loss"]
        self.worst = max(self.worst, loss.item())
        self.average = loss.detach() if self.average is None else 0.9 * self.average + 0.1 * loss.detach()
        return (loss, outputs) if return_outputs else loss


def hf_own_trainer():
    """A number of steps, a stream of data, bfloat16, an optimizer and a schedule of one's own."""
    model, callback = Model(), Remembering()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.05, total_steps=EPOCHS * 25)
    args = arguments(max_steps=EPOCHS * 25, bf16=True, gradient_accumulation_steps=1)
    trainer = OwnTrainer(model, args, train_dataset=Stream(), callbacks=[callback], optimizers=(optimizer, schedule))
    result = trainer.train()
    return [model], [*told(trainer, callback, result), trainer.worst, trainer.average.item()]


def hf_own_checkpoints():
    """A script that goes on from its own checkpoints by itself."""
    model, callback = Model(), Remembering()
    args = arguments(save_strategy="steps", save_steps=10, save_total_limit=2)
    trainer = Trainer(model, args, train_dataset=Noisy(), callbacks=[callback])
    result = trainer.train(resume_from_checkpoint=get_last_checkpoint(WORK))
    return [model], told(trainer, callback, result)


def hf_accelerate():
    """A loop of one's own around accelerate, which adds gradients up."""
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, 100)
    loader = DataLoader(Noisy(), batch_size=BATCH, shuffle=True)
    model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)
    losses = []
    for epoch in range(EPOCHS):
        for step, batch in enumerate(loader):
            with accelerator.accumulate(model):
                loss = model(batch["x"], batch["labels"])["loss"]
                accelerator.backward(loss)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            losses.append((epoch, step, loss.item()))
            paced()
    return [model], losses


KINDS = {
    one.__name__: one
    for one in (
        hf_plain, hf_accumulation, hf_workers, hf_early_stopping, hf_own_trainer, hf_own_checkpoints, hf_accelerate,
    )
}  # fmt: skip


def digest(models):
    tensors = [value for model in models for value in model.state_dict().values()]
    return hashlib.sha256(b"".join(one.contiguous().float().numpy().tobytes() for one in tensors)).hexdigest()


if __name__ == "__main__":
    models, record = KINDS[sys.argv[1]]()
    print(json.dumps({"weights": digest(models), "record": record, "next": torch.rand(2).tolist() + [random.random()]}))
