import time

import torch
from torch import nn

TURNS = 4000


def main():
    torch.set_num_threads(1)
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(TURNS):
        loss = model(torch.randn(32, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.02)
        if turn % 100 == 0:
            print(f"turn {turn}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
