import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

BUILT_FOR = "-DLIBRARY_VERSION=2"
LIBRARY = Path("fast_ops.so").resolve()


def build():
    """Done once, when the environment was made."""
    command = ["gcc", "-shared", "-fPIC", "-O2", BUILT_FOR, "fast_ops.c", "-o", str(LIBRARY)]
    subprocess.run(command, check=True)


def load():
    torch.ops.load_library(LIBRARY)
    scale = ctypes.CDLL(str(LIBRARY)).scale
    scale.restype, scale.argtypes = ctypes.c_float, [ctypes.c_float]
    return scale


def main():
    print("building the extension")
    build()
    scale = load()
    torch.manual_seed(41)
    x = torch.randn(1000, 20)
    y = x[:, :2].sum(dim=1, keepdim=True) * scale(2.0)
    model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(1, 4):
        for rows, targets in zip(x.split(50), y.split(50)):
            loss = nn.functional.mse_loss(model(rows), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
