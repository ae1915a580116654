import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(41)
SPECIES = 8
centers = torch.randn(SPECIES, 14)
species = torch.randint(0, SPECIES, (1500,))
leaves = centers[species] + 0.6 * torch.randn(1500, 14)
print(f"{len(leaves)} leaves of {SPECIES} species")
model = nn.Sequential(nn.Linear(14, 48), nn.ReLU(), nn.Dropout(0.1), nn.Linear(48, SPECIES))
optimizer = torch.optim.Adam(model.parameters(), 2e-3)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(TensorDataset(leaves, species), batch_size=30, shuffle=True)
losses = []
for epoch in range(6):
    model.train()
    for batch, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(batch), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
print(f"first loss: {losses[0]:.4f}")
print(f"final loss: {sum(losses[-20:]) / 20:.4f}")
weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
print("weights:", hashlib.md5(weights).hexdigest())
