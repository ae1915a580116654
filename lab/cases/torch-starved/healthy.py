import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Recordings(Dataset):
    """Each is fetched from a slow store."""

    def __len__(self):
        return 3200

    def __getitem__(self, index):
        time.sleep(0.0005)
        generator = torch.Generator().manual_seed(index)
        x = torch.rand(128, generator=generator)
        return x, x.sum()


def main():
    torch.set_num_threads(1)
    torch.manual_seed(4)
    loader = DataLoader(Recordings(), batch_size=16, num_workers=2, prefetch_factor=4)
    model = nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, 1))
    optimizer = torch.optim.Adam(model.parameters())
    print("training on recordings")
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x)[:, 0], y)
        time.sleep(0.05)  # stands for a model that takes its time
        loss.backward()
        optimizer.step()
    print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
