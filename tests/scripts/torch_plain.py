"""A plain loop: one loader, one model, one optimizer, a checkpoint at the end of an epoch."""

import hashlib
import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


data = TensorDataset(torch.randn(1280, 64), torch.randint(0, 10, (1280,)))
loader = DataLoader(data, batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()

losses = []
for epoch in range(25):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch % 5 == 0:
        print(f"epoch {epoch}: loss {losses[-1]:.4f}")
        torch.save(model.state_dict(), "model.pt")


def fingerprint(*models):
    found = hashlib.sha256()
    for model in models:
        for tensor in model.state_dict().values():
            found.update(tensor.detach().numpy().tobytes())
    return found.hexdigest()


print(
    json.dumps(
        {
            "steps": len(losses),
            "epochs": epoch + 1,
            "losses": losses,
            "batch_shape": list(inputs.shape),
            "wait_share": None,
            "weights": fingerprint(model),
        }
    )
)
