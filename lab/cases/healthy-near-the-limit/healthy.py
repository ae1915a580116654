from pathlib import Path

import numpy as np
import torch
from torch import nn

LIMIT = 1000 << 20
FILL = 0.9


def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def table():
    """As many rows as leave a little room."""
    rows = max(0, int(LIMIT * FILL - resident() - (120 << 20))) // 4096
    return np.ones((rows, 1024), dtype="float32")


def main():
    torch.set_num_threads(1)
    torch.manual_seed(85)
    features = table()
    print(f"training beside a table of {features.nbytes >> 20} MB")
    model = nn.Sequential(nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 1024))
    optimizer = torch.optim.Adam(model.parameters())
    rng = np.random.default_rng(85)
    for step in range(1200):
        rows = torch.from_numpy(features[rng.integers(0, len(features), size=32)])
        loss = nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 200 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
