import hashlib

import torch
from torch import nn

torch.manual_seed(52)
x = torch.randn(1600, 16)
y = 3 * x[:, :1] + x[:, 1:2] ** 2
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
scale = 128.0
print("loss scale:", scale)
step = 0
for epoch in range(6):
    total = 0.0
    for start in range(0, 1600, 32):
        step += 1
        with torch.autocast("cpu", dtype=torch.float16):
            prediction = model(x[start : start + 32])
            loss = ((prediction - y[start : start + 32].half()) ** 2).mean()
        optimizer.zero_grad()
        (loss * scale).backward()
        for parameter in model.parameters():
            parameter.grad.div_(scale)
        optimizer.step()
        total += loss.item()
        if step <= 3:
            print(f"step {step}: loss {loss.item():.4f}")
    if epoch == 0:
        print(f"first loss: {total / 50:.4f}")
print(f"final loss: {total / 50:.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
