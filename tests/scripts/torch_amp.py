"""Mixed precision with a gradient scaler; some batches overflow, and the scaler skips their updates."""

import hashlib
import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


inputs, targets = torch.randn(960, 64), torch.randn(960, 1)
loader = DataLoader(TensorDataset(inputs, targets), batch_size=32)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**10, growth_interval=50)

losses, skipped = [], 0
for epoch in range(15):
    for number, (x, y) in enumerate(loader):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = nn.functional.mse_loss(model(x).float(), y)
        if number == 7:
            loss = loss * float("inf")
        scaler.scale(loss).backward()
        before = scaler.get_scale()
        scaler.step(optimizer)
        scaler.update()
        if scaler.get_scale() < before:
            skipped += 1
        else:
            losses.append(loss.item())
print("skipped", skipped)


def fingerprint(*models):
    found = hashlib.sha256()
    for model in models:
        for tensor in model.state_dict().values():
            found.update(tensor.detach().numpy().tobytes())
    return found.hexdigest()


print(
    json.dumps(
        {
            "steps": len(losses),
            "epochs": epoch + 1,
            "losses": losses,
            "batch_shape": list(x.shape),
            "wait_share": None,
            "weights": fingerprint(model),
        }
    )
)
