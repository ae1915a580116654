import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(105)

centers = torch.randn(10, 20)
labels = torch.randint(0, 10, (8192,))
data = centers[labels] + 0.8 * torch.randn(8192, 20)
model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 10))
peak, warmup, steps = 0.4, 60, 320
optimizer = torch.optim.SGD(model.parameters(), lr=peak, momentum=0.9, weight_decay=1e-4)


def rate(step):
    if step < warmup:
        return 1e-4 + step / warmup
    return max(1e-3, 1 - (step - warmup) / (steps - warmup))


schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
for step in range(steps):
    part = torch.randint(0, 8192, (1024,))
    loss = F.cross_entropy(model(data[part]), labels[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    if step % 40 == 0:
        print(f"step {step}: loss {loss.item():.4f}, rate {schedule.get_last_lr()[0]:.5f}")
print(f"accuracy: {(model(data).argmax(1) == labels).float().mean().item():.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
