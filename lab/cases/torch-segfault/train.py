import ctypes
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

FEATURES = 64
DAMAGED = 2100
libc = ctypes.CDLL(None)
libc.memcpy.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t]


def write_records(path, count=3000):
    """A table of byte offsets (int64), then the records they point at."""
    rng = np.random.default_rng(9)
    records = rng.normal(size=(count, FEATURES)).astype(np.float32)
    offsets = np.arange(count, dtype=np.int64) * FEATURES * 4
    offsets[DAMAGED] = 1 << 44
    with path.open("wb") as file:
        file.write(offsets.tobytes())
        file.write(records.tobytes())


class Records(Dataset):
    """Copies records straight out of the mapped file."""

    def __init__(self, path, count=3000):
        self.file = np.memmap(path, dtype=np.uint8, mode="r")
        self.offsets = self.file[: count * 8].view(np.int64)
        self.start = self.file.ctypes.data + count * 8

    def __len__(self):
        return len(self.offsets)

    def __getitem__(self, index):
        record = np.empty(FEATURES, dtype=np.float32)
        libc.memcpy(record.ctypes.data, self.start + int(self.offsets[index]), FEATURES * 4)
        return record, np.float32(record[:8].sum())


def main():
    torch.manual_seed(9)
    path = Path("records.bin")
    write_records(path)
    loader = DataLoader(Records(path), batch_size=100)
    model = nn.Sequential(nn.Linear(FEATURES, 64), nn.ReLU(), nn.Linear(64, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    print(f"training on {len(loader.dataset)} records")
    for epoch in range(1, 6):
        for step, (features, targets) in enumerate(loader, 1):
            loss = nn.functional.mse_loss(model(features).squeeze(1), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 10 == 0:
                print(f"epoch {epoch}, step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
