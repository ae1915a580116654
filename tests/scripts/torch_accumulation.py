"""Gradient accumulation as people write it: four small batches, one update."""

import hashlib
import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


ACCUMULATE = 4
data = TensorDataset(torch.randn(1024, 64), torch.randint(0, 10, (1024,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(64, 128), nn.Tanh(), nn.Linear(128, 10))
optimizer = torch.optim.AdamW(model.named_parameters(), lr=1e-3)

losses = []
for epoch in range(15):
    for number, (inputs, targets) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(inputs), targets) / ACCUMULATE
        loss.backward()
        if (number + 1) % ACCUMULATE == 0:
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()
            losses.append(loss.item())


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
