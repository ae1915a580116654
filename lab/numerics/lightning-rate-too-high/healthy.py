import hashlib
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
L.seed_everything(72, verbose=False)
x = torch.randn(1920, 16)
y = torch.tanh(x[:, :1] * 2) + x[:, 1:2] ** 2
train_loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(x[1600:], y[1600:]), batch_size=160)


class LitModel(L.LightningModule):
    def __init__(self, lr=0.02):
        super().__init__()
        self.lr = lr
        self.body = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.out = nn.Linear(64, 1)

    def training_step(self, batch, batch_idx):
        features, target = batch
        loss = nn.functional.mse_loss(self.out(self.body(features)), target)
        self.log("loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch, batch_idx):
        features, target = batch
        self.log("val_loss", nn.functional.mse_loss(self.out(self.body(features)), target))

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=self.lr)


model = LitModel()
print("batches:", len(train_loader))
options = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer = L.Trainer(max_epochs=6, accelerator="cpu", num_sanity_val_steps=0, **options)
first = trainer.validate(model, val_loader, verbose=False)[0]["val_loss"]
print(f"first loss: {first:.4f}")
trainer.fit(model, train_loader, val_loader)
last = trainer.validate(model, val_loader, verbose=False)[0]["val_loss"]
print(f"final loss: {last:.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
