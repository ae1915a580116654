"""A PyTorch loop as people write it: `torch_unedited.py KIND ROWS RESULT.pt [STEPS]`. It knows nothing of Holdfast."""

import json
import sys

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

kind, rows, result = sys.argv[1], int(sys.argv[2]), sys.argv[3]
steps = int(sys.argv[4]) if len(sys.argv) > 4 else 6
torch.manual_seed(1)
torch.set_num_threads(2)


def dense():
    layers = [layer for _ in range(8) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
    return nn.Sequential(*layers, nn.Linear(1024, 10)), torch.randn(rows * steps, 1024)


def convolution():
    layers = [layer for _ in range(4) for layer in (nn.Conv2d(16, 16, 3, padding=1), nn.ReLU())]
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)
    )
    return model, torch.randn(rows * steps, 3, 32, 32)


def normalised():
    layers = [layer for _ in range(3) for layer in (nn.Conv2d(16, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU())]
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), *layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)
    )
    return model, torch.randn(rows * steps, 3, 32, 32)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.0, batch_first=True)
        self.body, self.head = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False), nn.Linear(64, 10)

    def forward(self, x):
        return self.head(self.body(x).mean(1))


def attention():
    return Attention(), torch.randn(rows * steps, 64, 64)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.head = nn.LSTM(32, 128, 2, batch_first=True), nn.Linear(128, 10)

    def forward(self, x):
        return self.head(self.lstm(x)[0][:, -1])


def recurrent():
    return Recurrent(), torch.randn(rows * steps, 64, 32)


kinds = {f.__name__: f for f in (dense, convolution, normalised, attention, recurrent)}
model, x = kinds[kind]()
y = torch.randint(0, 10, (len(x),))
loader = DataLoader(TensorDataset(x, y), batch_size=rows, shuffle=True)
optimizer = (
    torch.optim.AdamW(model.parameters(), lr=1e-3)
    if kind == "attention"
    else torch.optim.SGD(model.parameters(), lr=0.01)
)
losses = []
for batch, labels in loader:
    optimizer.zero_grad()
    loss = F.cross_entropy(model(batch), labels)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
torch.save({"weights": torch.cat([p.detach().flatten() for p in model.parameters()]), "losses": losses}, result)
print(json.dumps({"losses": losses}))
