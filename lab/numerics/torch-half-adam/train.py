import hashlib

import torch
from torch import nn

torch.manual_seed(51)
x = torch.randn(1600, 10)
x[:, 9] = 0
y = x[:, :1] - 0.5 * x[:, 3:4]
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
model.half()
x, y = x.half(), y.half()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
print("dtype:", x.dtype)
for epoch in range(6):
    total = 0.0
    for start in range(0, 1600, 32):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[start : start + 32]), y[start : start + 32])
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first loss: {total / 50:.4f}")
    print(f"epoch {epoch}: {total / 50:.4f}")
print(f"final loss: {total / 50:.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
