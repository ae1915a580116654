import ctypes
import subprocess
from pathlib import Path

import torch
from torch import nn

LINKED = ["-L.", "-l:libcudart.so.10.1"]


def build():
    """The wheel was made on a machine with another CUDA."""
    stub = [
        "gcc",
        "-shared",
        "-fPIC",
        "-x",
        "c",
        "/dev/null",
        "-Wl,-soname,libcudart.so.10.1",
        "-o",
        "libcudart.so.10.1",
    ]
    subprocess.run(stub, check=True)
    command = ["gcc", "-shared", "-fPIC", "-O2", "smooth.c", "-o", "smooth.so", "-Wl,--no-as-needed", *LINKED]
    subprocess.run(command, check=True)
    Path("libcudart.so.10.1").unlink()


def main():
    print("building the extension")
    build()
    smooth = ctypes.CDLL(str(Path("smooth.so").resolve())).smooth
    smooth.restype, smooth.argtypes = ctypes.c_float, [ctypes.c_float]

    torch.manual_seed(43)
    x = torch.randn(800, 10)
    y = x.sum(dim=1, keepdim=True) * smooth(0.5)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
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
