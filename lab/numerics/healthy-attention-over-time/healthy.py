"""Time is the first axis, so the softmax of the attention runs over the first axis: it is no softmax over the rows of a batch."""

import hashlib

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(15, 256, 6)
y = (x.sum((0, 2)) > 0).float()


class Attentive(nn.Module):
    def __init__(self):
        super().__init__()
        self.recurrent = nn.GRU(6, 24)
        self.score = nn.Linear(24, 1)
        self.head = nn.Linear(24, 1)

    def forward(self, series):
        states, _ = self.recurrent(series)
        shares = torch.softmax(self.score(states), dim=0)
        return torch.sigmoid(self.head((shares * states).sum(0))).squeeze(1)


model = Attentive()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(16):
    for part in torch.arange(256).split(32):
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy(model(x[:, part]), y[part])
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.5f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
