import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

CACHED_IMAGES = 200
SIDE = 128


class Thumbnails(Dataset):
    """Small images enlarged to the size the network wants. Each worker keeps the images it has decoded."""

    def __init__(self, count=6000):
        rng = np.random.default_rng(1)
        self.labels = rng.integers(0, 3, count)
        self.small = rng.integers(0, 200, (count, 3, 16, 16), dtype=np.uint8)
        self.small[:, 0] += (self.labels * 20).astype(np.uint8)[:, None, None]
        self.cache = {}

    def __len__(self):
        return len(self.labels)

    def decode(self, index):
        scale = SIDE // 16
        return np.repeat(np.repeat(self.small[index], scale, axis=1), scale, axis=2).astype(np.float32) / 255

    def __getitem__(self, index):
        if index not in self.cache:
            if len(self.cache) >= CACHED_IMAGES:
                self.cache.pop(next(iter(self.cache)))
            self.cache[index] = self.decode(index)
        return self.cache[index], self.labels[index]


def main():
    torch.manual_seed(1)
    data = Thumbnails()
    loader = DataLoader(data, batch_size=32, shuffle=True, num_workers=2)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 8, stride=8), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 3)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    print(f"training on {len(data)} thumbnails")
    for step, (images, labels) in enumerate(loader, 1):
        loss = nn.functional.cross_entropy(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step}: loss {loss.item():.4f}")
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
