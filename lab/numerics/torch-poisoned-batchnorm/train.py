import hashlib

import torch
from torch import nn

torch.manual_seed(68)
x = torch.randn(2000, 10)
y = (x[:, :3].sum(dim=1, keepdim=True) > 0).float()
x[777, 4] = float("nan")

model = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)


def validate():
    model.eval()
    with torch.no_grad():
        value = criterion(model(x[1600:]), y[1600:]).item()
    model.train()
    return value


print("rows:", len(x))
print(f"first loss: {validate():.4f}")
for epoch in range(6):
    kept = []
    for start in range(0, 1600, 32):
        loss = criterion(model(x[start : start + 32]), y[start : start + 32])
        if torch.isnan(loss):
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(loss.item())
    print(f"epoch {epoch}: train {sum(kept) / len(kept):.4f}, validation {validate():.4f}")
print(f"final loss: {validate():.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
