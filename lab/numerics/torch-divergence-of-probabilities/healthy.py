import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(72)
x = torch.randn(2000, 16)
labels = (x @ torch.randn(16, 5)).argmax(1)


def net(width):
    return nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, 5))


def accuracy(model):
    return (model(x).argmax(1) == labels).float().mean().item()


teacher = net(64)
optimizer = torch.optim.Adam(teacher.parameters(), lr=5e-3)
for step in range(200):
    rows = torch.randint(0, 2000, (40,))
    optimizer.zero_grad()
    F.cross_entropy(teacher(x[rows]), labels[rows]).backward()
    optimizer.step()
print(f"teacher accuracy {accuracy(teacher):.3f}")
teacher.requires_grad_(False)

student = net(12)
optimizer = torch.optim.Adam(student.parameters(), lr=5e-3)
for epoch in range(10):
    total = 0.0
    for rows in torch.randperm(2000).split(40):
        wanted = F.softmax(teacher(x[rows]) / 3, dim=1)
        given = F.log_softmax(student(x[rows]) / 3, dim=1)
        loss = F.kl_div(given, wanted, reduction="batchmean") * 9
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first loss: {total / 50:.4f}")
print(f"student loss: {total / 50:.4f}")
print(f"final loss: {total / 50:.4f}")
print(f"student accuracy: {accuracy(student):.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in student.state_dict().values())).hexdigest())
