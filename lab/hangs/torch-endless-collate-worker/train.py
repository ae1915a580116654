import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

BATCH, CLASSES = 8, 4


def varied(batch):
    """A batch with every class in it, as long as there is one left."""
    chosen, seen = [], set()
    while len(chosen) < BATCH:
        candidate = random.randrange(len(batch))
        if batch[candidate][1] not in seen or len(seen) == CLASSES:
            chosen.append(batch[candidate])
            seen.add(batch[candidate][1])
    return torch.stack([x for x, _ in chosen]), torch.tensor([int(y) for _, y in chosen])


class Views(torch.utils.data.Dataset):
    def __init__(self, epoch):
        rng = np.random.default_rng(epoch)
        self.x = torch.from_numpy(rng.normal(size=(1024, 10)).astype("float32"))
        labels = rng.integers(0, CLASSES, 1024)
        self.y = np.where((labels == 3) & (epoch == 2), 0, labels)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return self.x[i], int(self.y[i])


def main():
    torch.set_num_threads(1)
    print(f"{CLASSES} buckets")
    model = nn.Linear(10, CLASSES)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(4):
        for x, y in DataLoader(Views(epoch), batch_size=64, num_workers=2, collate_fn=varied):
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        print(f"epoch {epoch}: {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
