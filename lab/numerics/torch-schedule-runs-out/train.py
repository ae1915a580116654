import hashlib

import torch
from torch import nn

torch.manual_seed(71)
x = torch.randn(2000, 16)
labels = (x @ torch.randn(16, 5)).argmax(1)
model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.2)
print("steps an epoch:", 2000 // 40)
for epoch in range(10):
    total = 0.0
    for rows in torch.randperm(2000).split(40):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        scheduler.step()
        total += loss.item()
    if epoch == 0:
        print(f"first loss: {total / 50:.4f}")
    print(f"epoch {epoch}: {total / 50:.4f}, rate {scheduler.get_last_lr()[0]:.1e}")
print(f"final loss: {total / 50:.4f}")
print(f"accuracy: {(model(x).argmax(1) == labels).float().mean().item():.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
