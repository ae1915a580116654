import time

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Archive(IterableDataset):
    def __iter__(self):
        time.sleep(20)  # opens the archive
        for number in range(200):
            yield torch.full((3,), float(number % 7))


if __name__ == "__main__":
    torch.set_num_threads(1)
    model = nn.Linear(3, 3)
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(2):
        for x in DataLoader(Archive(), batch_size=10, num_workers=2):
            loss = (model(x) - x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} {loss.item():.3f}", flush=True)
