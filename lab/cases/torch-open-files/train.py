from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FOLDER = Path("shards")


def write_shards(count=300):
    FOLDER.mkdir(exist_ok=True)
    rng = np.random.default_rng(15)
    for number in range(count):
        np.save(FOLDER / f"{number:04d}.npy", rng.normal(size=(32, 16)).astype(np.float32))


class Shards(Dataset):
    """One small file per item, opened when it is first asked for."""

    def __init__(self):
        self.paths = sorted(FOLDER.glob("*.npy"))
        self.files = {}

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        if index not in self.files:
            self.files[index] = open(self.paths[index], "rb")
        file = self.files[index]
        file.seek(0)
        return np.load(file)


def main():
    torch.manual_seed(15)
    write_shards()
    loader = DataLoader(Shards(), batch_size=10, shuffle=True)
    model = nn.Sequential(nn.Linear(16, 32), nn.Tanh(), nn.Linear(32, 16))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    print(f"training on {len(loader.dataset)} shards")
    for epoch in range(1, 6):
        for step, rows in enumerate(loader, 1):
            loss = nn.functional.mse_loss(model(rows), rows)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 5 == 0:
                print(f"epoch {epoch}, step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
