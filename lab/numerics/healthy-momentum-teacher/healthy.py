import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(118)

import copy

data = torch.randn(2400, 16) @ torch.randn(16, 16)
data = data / data.std()
student = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
predictor = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 8))
teacher = copy.deepcopy(student)
for parameter in teacher.parameters():
    parameter.requires_grad_(False)
model = nn.ModuleDict({"student": student, "predictor": predictor, "teacher": teacher})
optimizer = torch.optim.Adam([*student.parameters(), *predictor.parameters()], lr=2e-3)
for epoch in range(8):
    for part in torch.randperm(2400).split(48):
        online = predictor(student(data[part] + 0.2 * torch.randn(len(part), 16)))
        with torch.no_grad():
            target = teacher(data[part] + 0.2 * torch.randn(len(part), 16))
        loss = 2 - 2 * F.cosine_similarity(online, target, dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters()):
                slow.mul_(0.99).add_(fast, alpha=0.01)
    print(f"epoch {epoch}: {loss.item():.4f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
