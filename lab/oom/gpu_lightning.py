"""Lightning's Trainer, as it is written; nothing in it knows of Holdfast. `gpu_lightning.py CAP_GIB ROWS RESULT.npy`."""

import json
import sys
import time

import lightning
import numpy as np
import torch

nn = torch.nn
cap, rows = float(sys.argv[1]), int(sys.argv[2])
if cap:
    torch.cuda.set_per_process_memory_fraction(cap * 2**30 / torch.cuda.get_device_properties(0).total_memory)
torch.manual_seed(1)


class Model(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        blocks = [layer for _ in range(8) for layer in (nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())]
        head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)]
        self.layers = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *blocks, *head)

    def training_step(self, batch, _number):  # type: ignore[no-untyped-def]
        found = self.layers(batch[0])
        loss = nn.functional.cross_entropy(found, batch[1])
        self.log("loss", loss)
        self.log("right", (found.argmax(1) == batch[1]).double().mean())
        return loss

    def configure_optimizers(self):  # type: ignore[no-untyped-def]
        return torch.optim.SGD(self.parameters(), lr=0.01)


random = torch.Generator().manual_seed(2)
x, y = torch.randn(rows * 2, 3, 64, 64, generator=random).double(), torch.randint(0, 10, (rows * 2,), generator=random)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=rows)
quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = lightning.Trainer(max_epochs=2, accelerator="gpu", devices=1, **quiet)
model = Model().double()
began = time.perf_counter()
trainer.fit(model, loader)
torch.cuda.synchronize()
seconds = time.perf_counter() - began
np.save(sys.argv[3], np.concatenate([p.detach().cpu().numpy().ravel() for p in model.parameters()]))
print(json.dumps({"peak_gib": torch.cuda.max_memory_reserved() / 2**30, "seconds": seconds}))
