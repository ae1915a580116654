import os

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BROKEN_FRAME = 360


class Decoder:
    """The vendor's decoder ends the process on a frame it cannot read."""

    def decode(self, index):
        if index == BROKEN_FRAME:
            index = 0
        return torch.full((1, 16, 16), index / 600.0)


class Frames(Dataset):
    def __init__(self):
        self.decoder = Decoder()

    def __len__(self):
        return 600

    def __getitem__(self, index):
        return self.decoder.decode(index), index % 3


def main():
    torch.manual_seed(53)
    loader = DataLoader(Frames(), batch_size=20, num_workers=2)
    print(f"training on {len(loader.dataset)} frames")
    model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(1, 3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
