import hashlib

import torch
from torch import nn

torch.manual_seed(66)
angle = torch.rand(2000) * 6.2832
ring = torch.randint(0, 2, (2000,))
points = torch.stack([angle.cos(), angle.sin()], 1) * (1 + ring + 0.2 * torch.randn(2000)).unsqueeze(1)

model = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))
for parameter in model.parameters():
    if parameter.dim() == 1:
        nn.init.zeros_(parameter)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
print("points:", len(points))
for epoch in range(12):
    total = 0.0
    for part in torch.randperm(2000).split(40):
        loss = criterion(model(points[part]), ring[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first loss: {total / 50:.4f}")
    print(f"epoch {epoch}: {total / 50:.4f}")
print(f"final loss: {total / 50:.4f}")
print(f"accuracy: {(model(points).argmax(1) == ring).float().mean().item():.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
