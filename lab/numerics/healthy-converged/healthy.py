import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(121)
torch.set_num_threads(1)  # the last bits of LAPACK differ from run to run: it computes in float64 below

x = torch.randn(2000, 5)
truth = torch.randn(5, 1)
y = x @ truth + 0.5 * torch.randn(2000, 1)
best = torch.linalg.lstsq(x.double(), y.double()).solution.float()
model = nn.Linear(5, 1, bias=False)
model.weight.data.copy_(best.T)
torch.save(model.state_dict(), "last.pt")

model.load_state_dict(torch.load("last.pt"))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(10):
    total = 0.0
    for part in torch.randperm(2000).split(20):
        loss = F.mse_loss(model(x[part]), y[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / 100:.5f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
