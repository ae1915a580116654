"""Other finders of a batch size on the convolution net of `plan_models.py`: `batch_finders.py accelerate|lightning`."""

import json
import sys
import warnings

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

warnings.filterwarnings("ignore")
torch.set_num_threads(1)
torch.manual_seed(0)
blocks = [layer for _ in range(4) for layer in (nn.Conv2d(24, 24, 3, padding=1), nn.BatchNorm2d(24), nn.ReLU())]
tail = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(24, 10)]
net = nn.Sequential(nn.Conv2d(3, 24, 3, padding=1), *blocks, *tail)
START, ROWS = 16, 8192


def data(rows):
    return TensorDataset(torch.randn(1, 3, 32, 32).expand(rows, -1, -1, -1), torch.zeros(rows, dtype=torch.long))


def with_accelerate():
    from accelerate.utils import find_executable_batch_size

    optimizer = torch.optim.Adam(net.parameters())

    @find_executable_batch_size(starting_batch_size=ROWS)
    def train(batch_size):
        x, y = next(iter(DataLoader(data(ROWS), batch_size=batch_size)))
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
        return batch_size

    return train()


def with_lightning():
    import lightning
    from lightning.pytorch.tuner import Tuner

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.net, self.batch_size = net, START

        def training_step(self, batch, _):
            return nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def configure_optimizers(self):
            return torch.optim.Adam(self.parameters())

        def train_dataloader(self):
            return DataLoader(data(ROWS), batch_size=self.batch_size)

    trainer = lightning.Trainer(
        max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False
    )
    return Tuner(trainer).scale_batch_size(Module(), mode="binsearch")


print(json.dumps({"batch": {"accelerate": with_accelerate, "lightning": with_lightning}[sys.argv[1]]()}))
