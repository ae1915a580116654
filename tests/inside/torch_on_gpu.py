"""A loop on a GPU in which any synchronisation of ours would be an error; prints what Holdfast counted."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

recorder: Any = sys.modules["holdfast_inside.start"].recorder()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1)).cuda()
optimizer = torch.optim.Adam(model.named_parameters(), lr=1e-4, fused=True)
scaler = torch.amp.GradScaler("cuda", init_scale=2.0**8, growth_interval=10**6)
loader = DataLoader(TensorDataset(torch.randn(3200, 256), torch.randn(3200, 1)), batch_size=32, pin_memory=True)
skipped, kept = 0, []
began = time.perf_counter()
torch.cuda.synchronize()
torch.cuda.set_sync_debug_mode("error")
epochs = 0
while time.perf_counter() < began + 3 or epochs < 3:
    for number, (x, y) in enumerate(loader):
        x, y = x.to("cuda", non_blocking=True), y.to("cuda", non_blocking=True)  # noqa: PLW2901
        optimizer.zero_grad()
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.mse_loss(model(x).float(), y)
        if number == 7:
            loss = loss * float("inf")
            skipped += 1
        else:
            kept.append(loss.detach())
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update(2.0**8)
    epochs += 1
torch.cuda.set_sync_debug_mode("default")
torch.cuda.synchronize()
own = len(kept)
losses = torch.stack(kept).tolist()
print(
    json.dumps(
        {
            "told_before_exit": recorder.steps,
            "own": own,
            "skipped": skipped,
            "epochs": epochs,
            "told_epochs": recorder.epoch_number + 1,
            "losses": losses,
        }
    )
)
