import hashlib

import torch
from torch import nn

torch.manual_seed(62)
x = torch.randn(2000, 8)
grade = torch.where(x[:, 0] - x[:, 1] + x[:, 2] > 0, 2, 1)
y = (grade - 1).float()
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
print("grades:", grade.unique().tolist())
for epoch in range(8):
    total = 0.0
    for part in torch.randperm(2000).split(40):
        loss = criterion(model(x[part]).squeeze(1), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first loss: {total / 50:.4f}")
    print(f"epoch {epoch}: {total / 50:.4f}")
right = (model(x).squeeze(1) > 0).float() == y
print(f"final loss: {total / 50:.4f}")
print(f"accuracy: {right.float().mean().item():.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
