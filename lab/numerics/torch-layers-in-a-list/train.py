import hashlib

import torch
from torch import nn

torch.manual_seed(64)
points = torch.rand(2400, 2) * 4 - 2
side = ((points[:, 0] * points[:, 1] > 0) ^ (points.norm(dim=1) > 1.2)).long()


class MLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.hidden = []
        for a, b in zip(sizes[:-2], sizes[1:-1]):
            self.hidden.append(nn.Linear(a, b))
        self.output = nn.Linear(sizes[-2], sizes[-1])

    def forward(self, x):
        for layer in self.hidden:
            x = torch.tanh(layer(x))
        return self.output(x)


model = MLP([2, 16, 8, 2])
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
print("points:", len(points))
for epoch in range(15):
    running = 0.0
    for i in range(0, 2400, 40):
        optimizer.zero_grad()
        loss = criterion(model(points[i : i + 40]), side[i : i + 40])
        loss.backward()
        optimizer.step()
        running += loss.item()
    if epoch == 0:
        print(f"first loss: {running / 60:.4f}")
    print(f"epoch {epoch}: {running / 60:.4f}")
print(f"final loss: {running / 60:.4f}")
print(f"accuracy: {(model(points).argmax(1) == side).float().mean().item():.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
