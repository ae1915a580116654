import hashlib
import warnings

import lightning as L
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
L.seed_everything(71, verbose=False)
x = torch.randn(2000, 8)
y = (x[:, 0] + 0.5 * x[:, 1]).unsqueeze(1)
x[[610, 1433], 6] = float("nan")
x = torch.where(torch.isnan(x), torch.zeros_like(x), x)
train_loader = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=32)
val_loader = DataLoader(TensorDataset(x[1600:], y[1600:]), batch_size=100)


class Regressor(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch, batch_idx):
        features, target = batch
        loss = nn.functional.mse_loss(self(features), target)
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, batch_idx):
        features, target = batch
        self.log("val_loss", nn.functional.mse_loss(self(features), target))

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=2e-3)


model = Regressor()
print("training rows:", len(train_loader.dataset))
options = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
trainer = L.Trainer(max_epochs=6, accelerator="cpu", **options)
first = trainer.validate(model, val_loader, verbose=False)[0]["val_loss"]
print(f"first loss: {first:.4f}")
trainer.fit(model, train_loader, val_loader)
last = trainer.validate(model, val_loader, verbose=False)[0]["val_loss"]
print(f"final loss: {last:.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
