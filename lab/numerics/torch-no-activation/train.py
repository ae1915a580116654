import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(208)

angle, label = torch.rand(1200) * 2 * torch.pi, torch.randint(0, 2, (1200,))
radius = torch.where(label == 0, 1.0, 0.4) + torch.randn(1200) * 0.05
x = torch.stack([radius * angle.cos(), radius * angle.sin()], 1)
loader = DataLoader(TensorDataset(x, label.float()[:, None]), batch_size=40, shuffle=True)
print("batches:", len(loader))
model = nn.Sequential(nn.Linear(2, 32), nn.Linear(32, 32), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

for epoch in range(15):
    total = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(loader):.4f}")
print(f"final loss: {total / len(loader):.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
