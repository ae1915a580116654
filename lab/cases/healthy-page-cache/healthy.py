from pathlib import Path

import numpy as np
import torch
from torch import nn

SHARDS, ROWS, FEATURES = 16, 16000, 1024


def write_shards(folder):
    folder.mkdir(exist_ok=True)
    block = np.random.default_rng(87).integers(0, 255, size=(ROWS, FEATURES), dtype="uint8")
    for number in range(SHARDS):
        np.save(folder / f"{number}.npy", block)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(87)
    folder = Path("shards")
    write_shards(folder)
    print(f"training from disk, {SHARDS * ROWS * FEATURES >> 20} MB")
    model = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Linear(32, FEATURES))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        for number in range(SHARDS):
            shard = np.load(folder / f"{number}.npy")
            for rows in np.array_split(shard[:4000], 20):
                x = torch.from_numpy(rows).float() / 255
                loss = nn.functional.mse_loss(model(x), x)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
