"""A small model in Lightning, with validation and a scheduler."""

import hashlib
import json
import logging
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)
import lightning

torch.set_num_threads(1)
lightning.seed_everything(0)


class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
        self.seen = []

    def training_step(self, batch, _):
        inputs, targets = batch
        self.shape = list(inputs.shape)
        loss = nn.functional.cross_entropy(self.layers(inputs), targets)
        self.seen.append(loss.item())
        return loss

    def validation_step(self, batch, _):
        inputs, targets = batch
        self.log("right", (self.layers(inputs).argmax(1) == targets).float().mean())

    def configure_optimizers(self):
        optimizer = torch.optim.Adam(self.parameters(), lr=1e-3)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]


def made(count):
    return TensorDataset(torch.randn(count, 64), torch.randint(0, 10, (count,)))


model = Model()
trainer = lightning.Trainer(
    max_epochs=6,
    accelerator="cpu",
    devices=1,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
trainer.fit(model, DataLoader(made(1600), batch_size=32, shuffle=True), DataLoader(made(320), batch_size=32))
weights = hashlib.sha256(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest()
print(
    json.dumps(
        {
            "steps": trainer.global_step,
            "epochs": trainer.current_epoch,
            "losses": model.seen,
            "batch_shape": model.shape,
            "wait_share": None,
            "weights": weights,
        }
    )
)
