import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(47)
centers = torch.randn(5, 10)
kinds = torch.randint(0, 5, (1600,))
rows = centers[kinds] + 0.5 * torch.randn(1600, 10)
kinds[400::37] = 255
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 5))
optimizer = torch.optim.SGD(model.parameters(), 0.05)
for epoch in range(8):
    for batch, labels in DataLoader(TensorDataset(rows, kinds), batch_size=32):
        optimizer.zero_grad()
        target = labels.masked_fill(labels == 255, -100)
        loss = nn.functional.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
print("done")
print("weights:", hashlib.md5(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest())
