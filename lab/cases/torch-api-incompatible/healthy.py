import numpy as np
import torch
from torch import nn


def series(count=1500):
    rng = np.random.default_rng(45)
    walk = np.cumsum(rng.normal(size=count + 24)).astype(np.float64)
    windows = np.lib.stride_tricks.sliding_window_view(walk, 25)
    return windows[:, :24] - windows[:, :1], windows[:, 24] - windows[:, 0]


def fold(x, y, number):
    held_out = np.arange(len(x)) % 2 == number
    return x[~held_out], y[~held_out]


def main():
    torch.manual_seed(45)
    print("training on 2 folds")
    x, y = series()
    for number in range(2):
        model = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        rows, targets = (torch.tensor(part, dtype=torch.float32) for part in fold(x, y, number))
        for step in range(60):
            loss = nn.functional.mse_loss(model(rows).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"fold {number}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
