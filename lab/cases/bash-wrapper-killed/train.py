import time

import torch
from torch import nn


def main():
    torch.set_num_threads(1)
    model = nn.Linear(32, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch in range(100):
        loss = model(torch.randn(64, 32)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.05)
        if batch % 20 == 0:
            print(f"batch {batch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
