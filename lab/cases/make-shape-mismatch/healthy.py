import argparse

import torch
from torch import nn


def build(hidden):
    return nn.Sequential(nn.Linear(20, hidden), nn.LayerNorm(hidden), nn.Linear(hidden, 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--hidden", type=int, default=32)
    options = parser.parse_args()
    model = build(options.hidden)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(20):
        loss = model(torch.randn(16, 20)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
