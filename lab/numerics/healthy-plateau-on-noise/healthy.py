import hashlib

import torch
from torch import nn

torch.manual_seed(76)
x = torch.randn(1200, 10)
y = 0.15 * x[:, :1] + torch.randn(1200, 1)
model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, factor=0.1, min_lr=1e-8, threshold=1e-2)
for epoch in range(40):
    total = 0.0
    for rows in torch.randperm(1000).split(50):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
    with torch.no_grad():
        validation = nn.functional.mse_loss(model(x[1000:]), y[1000:]).item()
    scheduler.step(validation)
    if epoch == 0:
        print(f"first loss: {total / 20:.4f}")
print(f"final loss: {total / 20:.4f}")
print(f"rate: {scheduler.get_last_lr()[0]:.1e}")
print(f"validation: {validation:.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
