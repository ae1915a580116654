import os
from pathlib import Path

import torch
from torch import nn

COPY_ENDS_AT = 1.0


def build():
    return nn.Sequential(nn.Linear(64, 2048), nn.ReLU(), nn.Linear(2048, 8))


def fetch(path):
    """The copy from the archive stops when the quota is reached."""
    torch.save({"epoch": 12, "model": build().state_dict()}, path)
    os.truncate(path, int(path.stat().st_size * COPY_ENDS_AT))


def main():
    torch.manual_seed(9)
    path = Path("pretrained.pt")
    fetch(path)
    print(f"resuming from {path}")
    model = build()
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x = torch.randn(2000, 64)
    y = x[:, :8].argmax(dim=1)
    for epoch in range(checkpoint["epoch"], checkpoint["epoch"] + 3):
        for rows, labels in zip(x.split(100), y.split(100)):
            loss = nn.functional.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
