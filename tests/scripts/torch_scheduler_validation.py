"""Training and validation loaders, a learning-rate schedule, validation also in the middle of an epoch."""

import hashlib
import json

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)


def made(count):
    return TensorDataset(torch.randn(count, 3, 8, 8), torch.randint(0, 5, (count,)))


train_loader = DataLoader(made(640), batch_size=32, shuffle=True, drop_last=True)
valid_loader = DataLoader(made(256), batch_size=64)
model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(576, 5))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=4, gamma=0.5)


def validate():
    model.eval()
    right = 0
    with torch.no_grad():
        for inputs, targets in valid_loader:
            right += (model(inputs).argmax(1) == targets).sum().item()
    model.train()
    return right


losses = []
for epoch in range(12):
    for number, (inputs, targets) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if number == 9:
            validate()
    scheduler.step()
    print(f"epoch {epoch}: {validate()} right, rate {scheduler.get_last_lr()[0]:.5f}")


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
