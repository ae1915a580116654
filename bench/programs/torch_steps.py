"""A plain PyTorch loop on DEVICE: layers of WIDTH, batches of ROWS. A GPU gets batches that lie there already: it is the
step that is measured, not the making of batches on one core."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from turns import Turns

device, width, rows = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
torch.manual_seed(0)
torch.set_num_threads(1)
if device == "cpu":
    data = TensorDataset(torch.randn(64 * rows, width), torch.randint(0, 10, (64 * rows,)))
    loader = DataLoader(data, batch_size=rows)
else:
    batch = torch.randn(rows, width, device=device), torch.randint(0, 10, (rows,), device=device)
    loader = DataLoader([batch] * 64, batch_size=None)
model = nn.Sequential(nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10))
model = model.to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

turns, going = Turns(), True
while going:
    for inputs, targets in loader:
        inputs, targets = inputs.to(device), targets.to(device)  # noqa: PLW2901 - as people write it
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if device != "cpu":
            loss.item()
        going = turns.over()
        if not going:
            break
