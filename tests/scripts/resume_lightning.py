"""Lightning as people use it, to be killed and gone on with; knows nothing of Holdfast. `resume_lightning.py KIND`

With `PACKAGE=pytorch_lightning` under its other name.
"""

import hashlib
import json
import logging
import os
import random
import sys
import time
import warnings
from importlib import import_module

warnings.filterwarnings("ignore")

import numpy as np
import torch
import torchmetrics
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

pl = import_module(os.environ.get("PACKAGE", "lightning.pytorch"))
callbacks = import_module(f"{pl.__name__}.callbacks")
logging.disable(logging.WARNING)

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
        return x[i] + 0.1 * torch.randn(8) + float(np.random.normal(scale=0.01)), y[i]


class Stream(IterableDataset):
    def __iter__(self):
        for i in range(SAMPLES):
            yield x[i] + 0.1 * random.random(), y[i]


def network():
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.2), nn.BatchNorm1d(32), nn.Linear(32, 1))


class Module(pl.LightningModule):
    """Keeps its outputs in a list until the epoch ends, and logs by step and by epoch."""

    def __init__(self):
        super().__init__()
        self.save_hyperparameters()
        self.net = network()
        self.error = torchmetrics.MeanAbsoluteError()
        self.outputs, self.epochs = [], []

    def training_step(self, batch, batch_idx):
        inputs, targets = batch
        found = self.net(inputs)
        loss = F.mse_loss(found, targets)
        self.error(found, targets)
        self.log("loss", loss, on_step=True, on_epoch=True, prog_bar=True)
        self.log("error", self.error, on_step=False, on_epoch=True)
        self.outputs.append(loss.detach())
        paced()
        return loss

    def on_train_epoch_end(self):
        self.epochs.append(torch.stack(self.outputs).mean().item())
        self.outputs.clear()

    def validation_step(self, batch, batch_idx):
        inputs, targets = batch
        self.log("val_loss", F.mse_loss(self.net(inputs), targets))

    def configure_optimizers(self):
        optimizer = torch.optim.SGD(self.parameters(), lr=0.02, momentum=0.9)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.9)]


class Data(pl.LightningDataModule):
    def setup(self, stage):
        self.train, self.held = Noisy(), TensorDataset(x[:64] * 0.9, y[:64])

    def train_dataloader(self):
        return DataLoader(self.train, batch_size=BATCH, shuffle=True)

    def val_dataloader(self):
        return DataLoader(self.held, batch_size=32)


class Remembering(callbacks.Callback):
    """As people's own callbacks do: in lists, and nothing is exported."""

    def __init__(self):
        self.batches, self.seen, self.rates = 0, [], []

    def on_train_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.batches += 1
        self.rates.append(round(trainer.optimizers[0].param_groups[0]["lr"], 9))

    def on_train_epoch_end(self, trainer, module):
        self.seen.append({name: value.item() for name, value in sorted(trainer.callback_metrics.items())})


def trainer_of(*own, **options):
    quiet = {
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": False,
    }
    standard = {
        "max_epochs": EPOCHS,
        "accelerator": "cpu",
        "devices": 1,
        "default_root_dir": WORK,
        "callbacks": list(own),
    }
    return pl.Trainer(**{**quiet, **standard, **options})


def told(trainer, own):
    metrics = {name: value.item() for name, value in sorted(trainer.callback_metrics.items())}
    return [own.batches, own.seen, own.rates, metrics, trainer.global_step, trainer.current_epoch]


def pl_plain():
    """Validation, a schedule by epoch, its own checkpoints of the best, early stopping, a progress bar, a log."""
    own = Remembering()
    best = callbacks.ModelCheckpoint(dirpath=WORK, monitor="val_loss", save_top_k=2, filename="{epoch}-{step}")
    stopping = callbacks.EarlyStopping("val_loss", patience=3)
    model = Module()
    trainer = trainer_of(
        own, best, stopping, enable_checkpointing=True, enable_progress_bar=True, max_epochs=EPOCHS * 2
    )
    data = Data()
    trainer.fit(model, datamodule=data)  # alone in its line: before Python 3.11 others are not followed
    name = os.path.basename(best.best_model_path).replace("-v1", "").replace("-v2", "")  # where it was written before
    scores = [name, best.best_model_score.item(), stopping.wait_count, stopping.stopped_epoch]
    return [model], [*told(trainer, own), model.epochs, scores]


def pl_accumulation():
    """Three batches to an update, clipped; bfloat16; validation within the epoch."""
    own, model = Remembering(), Module()
    trainer = trainer_of(
        own, accumulate_grad_batches=3, gradient_clip_val=0.5, precision="bf16-mixed", val_check_interval=0.4
    )
    trainer.fit(model, datamodule=Data())
    return [model], [*told(trainer, own), model.epochs]


class Adversarial(pl.LightningModule):
    """Two optimizers, by hand."""

    def __init__(self):
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 8))
        self.critic = nn.Sequential(nn.Linear(8, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
        self.fixed, self.seen = torch.randn(4, 4), []

    def training_step(self, batch, batch_idx):
        (real,) = batch
        optimizer_g, optimizer_d = self.optimizers()
        fake = self.generator(torch.randn(len(real), 4))
        self.toggle_optimizer(optimizer_d)
        error = F.softplus(self.critic(fake.detach())).mean() + F.softplus(-self.critic(real)).mean()
        optimizer_d.zero_grad()
        self.manual_backward(error)
        optimizer_d.step()
        self.untoggle_optimizer(optimizer_d)
        self.toggle_optimizer(optimizer_g)
        loss = F.softplus(-self.critic(fake)).mean()
        optimizer_g.zero_grad()
        self.manual_backward(loss)
        optimizer_g.step()
        self.untoggle_optimizer(optimizer_g)
        self.log_dict({"g": loss, "d": error}, on_epoch=True)
        if self.trainer.is_last_batch:
            for schedule in self.lr_schedulers():
                schedule.step()
            self.seen.append(self.generator(self.fixed).detach())
        paced()

    def configure_optimizers(self):
        optimizers = [
            torch.optim.Adam(one.parameters(), lr=2e-3, betas=(0.5, 0.999)) for one in (self.generator, self.critic)
        ]
        return optimizers, [torch.optim.lr_scheduler.ExponentialLR(one, 0.95) for one in optimizers]


def pl_manual():
    own, model = Remembering(), Adversarial()
    trainer = trainer_of(own)
    trainer.fit(model, DataLoader(TensorDataset(x), batch_size=BATCH, shuffle=True, drop_last=True))
    return [model], [*told(trainer, own), [one.tolist() for one in model.seen]]


class Scheduled(Module):
    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 1e-2, total_steps=EPOCHS * 25 + 7)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


def pl_workers():
    """A number of steps instead of epochs, a schedule by step, two workers."""
    own, model = Remembering(), Scheduled()
    trainer = trainer_of(own, max_steps=EPOCHS * 25 + 7, max_epochs=-1)
    loader = DataLoader(Noisy(), batch_size=BATCH, shuffle=True, num_workers=2)
    trainer.fit(model, loader, DataLoader(TensorDataset(x[:64], y[:64]), batch_size=32))
    return [model], [*told(trainer, own), model.epochs]


class Plateau(Module):
    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-2)
        schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.5)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "monitor": "loss_epoch"}}


def pl_stream():
    """An iterable data set, of which Lightning is one batch ahead; a rate that falls when the loss does not."""
    own, model = Remembering(), Plateau()
    trainer = trainer_of(own)
    trainer.fit(model, DataLoader(Stream(), batch_size=BATCH))
    return [model], [*told(trainer, own), model.epochs]


class Paired(Module):
    def training_step(self, batch, batch_idx):
        loss = super().training_step(batch["noisy"], batch_idx)
        return loss + 0.1 * F.l1_loss(self.net(batch["plain"][0]), batch["plain"][1])


def pl_two_loaders():
    """Of different lengths: the shorter one begins anew within the epoch."""
    own, model = Remembering(), Paired()
    trainer = trainer_of(own)
    plain = DataLoader(TensorDataset(x[:240], y[:240]), batch_size=BATCH, shuffle=True)
    trainer.fit(model, {"noisy": DataLoader(Noisy(), batch_size=BATCH, shuffle=True), "plain": plain})
    return [model], [*told(trainer, own), model.epochs]


def pl_own_checkpoints():
    """A script that goes on from its own checkpoints by itself."""
    own, model = Remembering(), Module()
    last = callbacks.ModelCheckpoint(dirpath=WORK, save_last=True, every_n_train_steps=10)
    trainer = trainer_of(own, last, enable_checkpointing=True)
    trainer.fit(model, datamodule=Data(), ckpt_path="last")
    return [model], [*told(trainer, own), model.epochs]


def pl_folds():
    """Cross validation: a Trainer in each turn."""
    models, seen = [], []
    for fold in range(3):
        own, model, rows = Remembering(), Module(), torch.arange(SAMPLES)
        trainer = trainer_of(own, max_epochs=max(1, EPOCHS // 2))
        held = DataLoader(TensorDataset(x[rows % 3 == fold], y[rows % 3 == fold]), batch_size=32)
        trainer.fit(model, DataLoader(Noisy(), batch_size=BATCH, shuffle=True), held)
        models.append(model)
        seen.append(told(trainer, own))
    return models, seen


KINDS = {
    one.__name__: one
    for one in (
        pl_plain, pl_accumulation, pl_manual, pl_workers, pl_stream, pl_two_loaders, pl_own_checkpoints, pl_folds,
    )
}  # fmt: skip


def digest(models):
    tensors = [value for model in models for value in model.state_dict().values()]
    return hashlib.sha256(b"".join(one.contiguous().float().numpy().tobytes() for one in tensors)).hexdigest()


if __name__ == "__main__":
    models, record = KINDS[sys.argv[1]]()
    print(json.dumps({"weights": digest(models), "record": record, "next": torch.rand(2).tolist() + [random.random()]}))
