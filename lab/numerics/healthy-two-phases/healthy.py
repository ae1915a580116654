import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(123)

x = torch.randn(2400, 10)
first = (x[:, 0] > 0).long()
second = (x[:, 1] * x[:, 2] > 0).long()
trunk = nn.Sequential(nn.Linear(10, 48), nn.ReLU())
heads = nn.ModuleList([nn.Linear(48, 2), nn.Linear(48, 2)])
model = nn.ModuleDict({"trunk": trunk, "heads": heads})
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    phase = 0 if epoch < 5 else 1
    target = (first, second)[phase]
    for part in torch.randperm(2400).split(40):
        loss = F.cross_entropy(heads[phase](trunk(x[part])), target[part])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}, head {phase}: {loss.item():.4f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
