import hashlib

import torch
from torch import nn

torch.manual_seed(73)
x = torch.randn(1200, 16)
labels = (x[:, 0] > 0).long() + 2 * (x[:, 1] > 1).long()
counts = torch.bincount(labels, minlength=5).float()
weights = counts.sum() / (5 * counts.clamp(min=1))
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 5))
criterion = nn.CrossEntropyLoss(weight=weights, label_smoothing=0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
print("rows:", len(x))
for epoch in range(6):
    for part in torch.randperm(1200).split(40):
        optimizer.zero_grad()
        loss = criterion(model(x[part]), labels[part])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
