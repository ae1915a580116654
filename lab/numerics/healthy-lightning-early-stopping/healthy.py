import hashlib
import warnings

import lightning as L
import torch
from lightning.pytorch.callbacks import EarlyStopping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
L.seed_everything(161, verbose=False)
centers = torch.randn(4, 10)
labels = torch.randint(0, 4, (2000,))
x = centers[labels] + 0.9 * torch.randn(2000, 10)
train_loader = DataLoader(TensorDataset(x[:1600], labels[:1600]), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(x[1600:], labels[1600:]), batch_size=100)


class Classifier(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(10, 48), nn.ReLU(), nn.Dropout(0.2), nn.Linear(48, 4))

    def training_step(self, batch, batch_idx):
        x, y = batch
        return nn.functional.cross_entropy(self.net(x), y)

    def validation_step(self, batch, batch_idx):
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self.net(x), y))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=5e-3)
        return [optimizer], [torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)]


model = Classifier()
options = dict(logger=False, enable_checkpointing=False, enable_progress_bar=False, enable_model_summary=False)
stop = EarlyStopping("val_loss", patience=3, check_finite=True)
trainer = L.Trainer(max_epochs=10, accelerator="cpu", gradient_clip_val=1.0, callbacks=[stop], **options)
trainer.fit(model, train_loader, val_loader)
print("epochs:", trainer.current_epoch)
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
