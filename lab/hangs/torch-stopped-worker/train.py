import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Slides(Dataset):
    def __len__(self):
        return 3200

    def __getitem__(self, i):
        time.sleep(0.002)
        return torch.full((1, 12, 12), i / 3200), i % 3


def main():
    torch.set_num_threads(1)
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.Flatten(), nn.Linear(400, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loader = DataLoader(Slides(), batch_size=16, num_workers=2, shuffle=True, persistent_workers=True)
    for step, (image, label) in enumerate(loader):
        loss = nn.functional.cross_entropy(net(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
