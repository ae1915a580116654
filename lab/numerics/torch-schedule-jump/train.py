import hashlib

import torch
from torch import nn

torch.manual_seed(49)
x = torch.randn(1600, 12)
y = (x[:, 0] * x[:, 1] - x[:, 2]).unsqueeze(1)
model = nn.Sequential(nn.Linear(12, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.03)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=100)
criterion = nn.MSELoss()


def held_out():
    with torch.no_grad():
        return criterion(model(x[1280:]), y[1280:]).item()


print("rows:", len(x))
print(f"first loss: {held_out():.4f}")
for epoch in range(8):
    order = torch.randperm(1280)
    for part in order.split(32):
        optimizer.zero_grad()
        loss = criterion(model(x[part]), y[part])
        loss.backward()
        optimizer.step()
    scheduler.step()
    print(f"epoch {epoch}: {held_out():.4f}, lr {scheduler.get_last_lr()[0]:.4f}")
print(f"final loss: {held_out():.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
