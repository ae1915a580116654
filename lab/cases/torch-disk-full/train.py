from pathlib import Path

import torch
from torch import nn

CHECKPOINTS = Path("checkpoints")
KEEP = None


def save(model, optimizer, epoch):
    CHECKPOINTS.mkdir(exist_ok=True)
    state = {"epoch": epoch, "model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save(state, CHECKPOINTS / f"epoch-{epoch:02d}.pt")
    if KEEP is not None:
        for old in sorted(CHECKPOINTS.glob("epoch-*.pt"))[:-KEEP]:
            old.unlink()


def main():
    torch.manual_seed(14)
    x = torch.randn(4000, 256)
    y = (x[:, :10].sum(dim=1) > 0).long()
    print(f"training on {len(x)} rows")
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, 9):
        for rows, labels in zip(x.split(200), y.split(200)):
            loss = nn.functional.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")
        save(model, optimizer, epoch)


if __name__ == "__main__":
    main()
