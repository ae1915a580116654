from pathlib import Path

import numpy as np
import torch
from torch import nn

SHARDS, ROWS, FEATURES = 4, 12000, 512
FOLDER = Path("shards")


def write_shards():
    FOLDER.mkdir(exist_ok=True)
    for number in range(3):
        rng = np.random.default_rng(number)
        np.save(FOLDER / f"part-{number}.npy", rng.integers(0, 255, size=(ROWS, FEATURES), dtype="uint8"))


def load(count):
    parts = []
    for number in range(count):
        print(f"reading shard {number}")
        part = np.load(FOLDER / f"part-{number % 3}.npy")
        parts.append(part.astype("float32") / 255.0)
    return torch.from_numpy(np.concatenate(parts))


def main():
    torch.manual_seed(31)
    torch.set_num_threads(1)
    write_shards()
    x = load(SHARDS)
    print(f"training on {len(x)} rows")
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, FEATURES))
    optimizer = torch.optim.Adam(model.parameters())
    for step, rows in enumerate(x.split(256)):
        loss = nn.functional.mse_loss(model(rows), rows)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
