from functools import lru_cache

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

COUNT, SIDE = 4000, 160


@lru_cache(maxsize=1200)
def decoded(index):
    generator = torch.Generator().manual_seed(index)
    return torch.rand(3, SIDE, SIDE, generator=generator)


class Photos(Dataset):
    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        return decoded(index)[:, ::4, ::4], index % 5


def main():
    torch.set_num_threads(1)
    torch.manual_seed(89)
    print("training through a cache of 1200 images")
    loader = DataLoader(Photos(), batch_size=16, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5)
    )
    optimizer = torch.optim.Adam(model.parameters())
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}, {decoded.cache_info().currsize} in the cache")


if __name__ == "__main__":
    main()
