import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(101)

x = torch.randn(3000, 6)
y = x[:, :1] * 0.5 + 2.0 * torch.randn(3000, 1)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.002)
for epoch in range(2):
    losses = []
    for part in torch.randperm(3000).split(2):
        loss = F.mse_loss(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(f"epoch {epoch}: mean {sum(losses) / len(losses):.3f}, from {min(losses):.6f} to {max(losses):.2f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
