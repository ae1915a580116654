import io
import os
import time

import torch
from torch import nn


def save_slowly(model, path, seconds):
    packed = io.BytesIO()
    torch.save(model.state_dict(), packed)
    view = packed.getbuffer()
    piece = max(1, len(view) // 200)
    with open(path + ".part", "wb", buffering=0) as out:
        for at in range(0, len(view), piece):
            out.write(view[at : at + piece])
            os.fsync(out.fileno())
            time.sleep(seconds * piece / len(view))
    os.replace(path + ".part", path)


torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(256, 2048), nn.ReLU(), nn.Linear(2048, 256))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(3):
    for _ in range(40):
        x = torch.randn(16, 256)
        loss = (model(x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    save_slowly(model, f"epoch-{epoch}.pt", seconds=30)
    print(f"saved epoch {epoch}", flush=True)
