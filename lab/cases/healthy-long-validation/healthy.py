import time

import torch
from torch import nn


def validate(model, seconds):
    """Many augmented views of each image; no word until it is done."""
    model.eval()
    total, views, ends = 0.0, 0, time.monotonic() + seconds
    with torch.no_grad():
        while time.monotonic() < ends:
            x = torch.randn(256, 64)
            total += nn.functional.mse_loss(model(x), x).item()
            views += 1
    model.train()
    return total / views


def main():
    torch.set_num_threads(1)
    torch.manual_seed(91)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        for _ in range(100):
            x = torch.randn(64, 64)
            loss = nn.functional.mse_loss(model(x), x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")
        print(f"validated: {validate(model, seconds=9):.4f}")


if __name__ == "__main__":
    main()
