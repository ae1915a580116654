import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(122)

atoms = F.normalize(torch.randn(40, 24), dim=1)
codes = torch.rand(3000, 40) * (torch.rand(3000, 40) < 0.06)
data = codes @ atoms * 4
encoder = nn.Linear(24, 128)
decoder = nn.Linear(128, 24)
model = nn.Sequential(encoder, nn.ReLU(), decoder)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(12):
    active = total = 0.0
    for part in torch.randperm(3000).split(50):
        hidden = F.relu(encoder(data[part]))
        loss = F.mse_loss(decoder(hidden), data[part]) + 0.01 * hidden.abs().sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        active += (hidden > 0).float().mean().item()
        total += loss.item()
    print(f"epoch {epoch}: loss {total / 60:.4f}, active units {active / 60:.2f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
