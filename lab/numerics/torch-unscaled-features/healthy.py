import hashlib

import torch
from torch import nn

torch.manual_seed(60)
n = 2000
land = torch.rand(n) * 40000 + 5000
rooms = torch.randint(1, 8, (n,)).float()
slope = torch.rand(n)
features = torch.stack([land, rooms, slope], dim=1)
rent = (land / 20000 + 0.3 * rooms - slope + 0.1 * torch.randn(n)).unsqueeze(1)
features = (features - features.mean(0)) / features.std(0)
print("largest feature:", features.max().item())
model = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(10):
    total = 0.0
    for i in range(0, n, 40):
        optimizer.zero_grad()
        loss = criterion(model(features[i : i + 40]), rent[i : i + 40])
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first loss: {total / 50:.4f}")
print(f"final loss: {total / 50:.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
