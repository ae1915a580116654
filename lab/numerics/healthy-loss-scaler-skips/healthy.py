import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(109)

x = torch.randn(3200, 16)
y = torch.sin(x[:, :1]) + x[:, 1:2]
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**24, growth_interval=40)
skipped = step = 0
for epoch in range(6):
    for part in torch.randperm(3200).split(32):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.mse_loss(model(x[part]).float(), y[part])
        optimizer.zero_grad()
        before = scaler.get_scale()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        step += 1
        if scaler.get_scale() < before:
            skipped += 1
            print(f"step {step}: overflow, scale {before:.0f} -> {scaler.get_scale():.0f}")
    print(f"epoch {epoch}: loss {loss.item():.4f}")
print(f"skipped {skipped} of {step}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
