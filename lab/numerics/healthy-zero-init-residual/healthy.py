import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(120)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.a = nn.Linear(width, width)
        self.b = nn.Linear(width, width)
        nn.init.zeros_(self.b.weight)
        nn.init.zeros_(self.b.bias)

    def forward(self, x):
        return x + self.b(F.relu(self.a(x)))


x = torch.randn(2400, 16)
y = torch.sin(2 * x[:, :1]) * x[:, 1:2]
model = nn.Sequential(nn.Linear(16, 32), Block(32), Block(32), Block(32), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    total = 0.0
    for part in torch.randperm(2400).split(40):
        loss = F.mse_loss(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / 60:.4f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
