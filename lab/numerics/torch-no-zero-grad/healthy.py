import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(75)
x = torch.randn(2000, 10)
y = x[:, :1] * 1.5 - x[:, 4:5] + 0.5
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
print("batches:", len(loader))
for epoch in range(8):
    total = 0.0
    for inputs, targets in loader:
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first loss: {total / len(loader):.4f}")
    print(f"epoch {epoch}: {total / len(loader):.4f}")
print(f"final loss: {total / len(loader):.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
