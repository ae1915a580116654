import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(58)
X = torch.randn(2000, 7)
y = X @ torch.randn(7) + 0.1 * torch.randn(2000)
loader = DataLoader(TensorDataset(X, y), batch_size=40, shuffle=True)

model = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
print("variance of y:", y.var().item())
for epoch in range(10):
    total = 0.0
    for xb, yb in loader:
        pred = model(xb).squeeze(1)
        loss = criterion(pred, yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first loss: {total / len(loader):.4f}")
    print(f"epoch {epoch}: {total / len(loader):.4f}")
error = (model(X).squeeze(1) - y).pow(2).mean() / y.var()
print(f"final loss: {total / len(loader):.4f}")
print(f"unexplained: {error.item():.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
