import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(43)
n = 2000
orders = torch.poisson(torch.full((n,), 2.0))
spent = torch.rand(n) * 3 + orders
returns = torch.rand(n)
loyal = ((spent - 2 * returns + 0.2 * torch.randn(n)) > 2).float()
features = torch.stack([spent - 3, returns, spent / (orders + 1)], dim=1)
loader = DataLoader(TensorDataset(features, loyal), batch_size=40, shuffle=True)
print("customers:", n)

model = nn.Sequential(nn.Linear(3, 32), nn.Tanh(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.005)
for epoch in range(8):
    running = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
        running += loss.item()
    if epoch == 0:
        print(f"first loss: {running / len(loader):.4f}")
    print(f"epoch {epoch}: {running / len(loader):.4f}")
print(f"final loss: {running / len(loader):.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
