import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(112)

base = torch.randn(2048, 24)
encoder = nn.Sequential(nn.Linear(24, 64), nn.ReLU(), nn.Linear(64, 16))
model = encoder
optimizer = torch.optim.AdamW(encoder.parameters(), lr=2e-3)
for epoch in range(8):
    total = 0.0
    for part in torch.randperm(2048).split(64):
        a = F.normalize(encoder(base[part] + 0.8 * torch.randn(64, 24)), dim=1)
        b = F.normalize(encoder(base[part] + 0.8 * torch.randn(64, 24)), dim=1)
        logits = a @ b.T / 0.2
        loss = F.cross_entropy(logits, torch.arange(64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / 32:.4f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
