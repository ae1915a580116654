import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(207)

x = torch.randn(2000, 10)
y = (x @ torch.randn(10, 1) > 0).float()
loader = DataLoader(TensorDataset(x, y.long().squeeze(1)), batch_size=40, shuffle=True)
print("batches:", len(loader))
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)

for epoch in range(6):
    total = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(loader):.4f}")
with torch.no_grad():
    guess = model(x).argmax(1, keepdim=True).float()
print(f"accuracy: {(guess == y).float().mean().item():.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
