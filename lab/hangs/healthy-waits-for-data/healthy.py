import os
import threading
import time

import torch
from torch import nn


def copy():
    """The other job, on the same disk."""
    time.sleep(50)
    torch.save(torch.randn(500, 5), "data.tmp")
    os.rename("data.tmp", "data.pt")


torch.set_num_threads(1)
threading.Thread(target=copy).start()
while not os.path.exists("data.pt"):
    time.sleep(1)
print("the data is here", flush=True)
data, model = torch.load("data.pt"), nn.Linear(5, 1)
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1)


def closure():
    optimizer.zero_grad()
    loss = (model(data).squeeze() - data.norm(dim=1)).square().mean()
    loss.backward()
    return loss


for _ in range(20):
    print(f"{optimizer.step(closure).item():.4f}")
