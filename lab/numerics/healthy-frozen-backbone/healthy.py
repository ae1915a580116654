import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(106)

centers = torch.randn(6, 16)
labels = torch.randint(0, 6, (3000,))
data = centers[labels] + 0.6 * torch.randn(3000, 16)
backbone = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.BatchNorm1d(48), nn.Linear(48, 24), nn.ReLU())
pretext = nn.Linear(24, 16)
optimizer = torch.optim.Adam([*backbone.parameters(), *pretext.parameters()], lr=2e-3)
for part in torch.randperm(3000).split(50):
    loss = F.mse_loss(pretext(backbone(data[part])), data[part])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
torch.save(backbone.state_dict(), "backbone.pt")

backbone.load_state_dict(torch.load("backbone.pt"))
for parameter in backbone.parameters():
    parameter.requires_grad = False
backbone.eval()
model = nn.Sequential(backbone, nn.Linear(24, 6))
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=0.01)
for epoch in range(8):
    for part in torch.randperm(3000).split(50):
        loss = F.cross_entropy(model(data[part]), labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
print(f"accuracy: {(model(data).argmax(1) == labels).float().mean().item():.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
