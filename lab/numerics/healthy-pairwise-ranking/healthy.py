"""Differences of all pairs of scores are trained to be those of the ratings: a matrix of every row with every row, on purpose."""

import hashlib

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(512, 8)
ratings = x @ torch.randn(8)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(60):
    for part in torch.arange(512).split(32):
        scores = model(x[part])
        wanted = ratings[part][:, None] - ratings[part][None, :]
        loss = ((scores - scores.T) - wanted).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.5f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
