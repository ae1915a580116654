import time

import torch
from torch import nn

SECONDS = 120


def main():
    torch.manual_seed(57)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(40, 64), nn.ReLU(), nn.Linear(64, 40))
    optimizer = torch.optim.Adam(model.parameters())
    started = time.monotonic()
    step = 0
    while time.monotonic() - started < SECONDS:
        x = torch.randn(64, 40)
        loss = nn.functional.mse_loss(model(x), x)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        if step % 500 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
            time.sleep(0.2)
    print(f"done after {step} steps")


if __name__ == "__main__":
    main()
