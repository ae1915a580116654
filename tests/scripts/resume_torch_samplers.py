"""PyTorch loops whose order, or whose workers, keep something from epoch to epoch. They know nothing of Holdfast. `resume_torch_samplers.py KIND`"""

import hashlib
import json
import os
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Sampler, TensorDataset

SAMPLES, BATCH, EPOCHS = 640, 16, int(os.environ.get("EPOCHS", "8"))
PAUSE_S = float(os.environ.get("STEP_PAUSE_S", "0.006"))
np.random.seed(4)
torch.manual_seed(4)
torch.set_num_threads(1)
x, y = torch.randn(SAMPLES, 8), torch.randn(SAMPLES, 1)
classes = np.random.randint(0, 5, SAMPLES)


def network():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))


def trained(model, optimizer, inputs, targets):
    loss = F.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(PAUSE_S)
    return loss.item()


def over(loader, validate=None):
    model, losses = network(), []
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(EPOCHS):
        for inputs, targets in loader:
            losses.append(trained(model, optimizer, inputs, targets))
            if len(losses) == 60:  # in the second epoch
                open("ask", "w").close()  # whoever asks for a checkpoint of what is refused asks from now on
        if validate is not None:
            with torch.no_grad():
                losses.append(sum(F.mse_loss(model(inputs), targets).item() for inputs, targets in validate))
    return [model], losses


class OfEachClass(Sampler):
    """As many of each class, which are shuffled again when all were given: how far each class is stays from epoch to epoch."""

    def __init__(self, of_each, batches):
        self.of_each, self.batches = of_each, batches
        self.rows = {one: np.flatnonzero(classes == one) for one in range(5)}
        self.given = dict.fromkeys(self.rows, 0)

    def __len__(self):
        return self.batches

    def __iter__(self):
        for _ in range(self.batches):
            batch = []
            for one, rows in self.rows.items():
                if self.given[one] + self.of_each > len(rows):
                    np.random.shuffle(rows)
                    self.given[one] = 0
                batch += rows[self.given[one] : self.given[one] + self.of_each].tolist()
                self.given[one] += self.of_each
            yield batch


class DrawsEachBatch(Sampler):
    def __len__(self):
        return SAMPLES // BATCH

    def __iter__(self):
        for _ in range(len(self)):
            yield torch.randint(SAMPLES, (BATCH,)).tolist()


class Augmented(Dataset):
    def __init__(self, rows=SAMPLES):
        self.rows, self.numbers = rows, np.random.default_rng(3)

    def __len__(self):
        return self.rows

    def __getitem__(self, row):
        return x[row] * (torch.rand(8) > 0.2) + float(self.numbers.normal()) * 0.1, y[row]


def counting_sampler():
    return over(DataLoader(TensorDataset(x, y), batch_sampler=OfEachClass(3, SAMPLES // BATCH)))


def draws_in_the_sampler():
    """It draws the numbers that dropout draws, too."""
    return over(DataLoader(TensorDataset(x, y), batch_sampler=DrawsEachBatch()))


def augmented_by_kept_workers():
    """Workers that persist draw random numbers, from PyTorch's and from a generator of the data set's."""
    return over(DataLoader(Augmented(), BATCH, shuffle=True, num_workers=2, persistent_workers=True))


def also_validated_by_kept_workers():
    """The validation draws random numbers in workers that persist: what those have drawn cannot be known."""
    held_out = DataLoader(Augmented(64), BATCH, num_workers=1, persistent_workers=True)
    return over(DataLoader(TensorDataset(x, y), BATCH, shuffle=True), held_out)


KINDS = {
    one.__name__: one
    for one in (
        counting_sampler, draws_in_the_sampler, augmented_by_kept_workers, also_validated_by_kept_workers,
    )
}  # fmt: skip


def digest(values):
    return hashlib.sha256(b"".join(np.ascontiguousarray(value).tobytes() for value in values)).hexdigest()


if __name__ == "__main__":
    models, record = KINDS[sys.argv[1]]()
    weights = [value.detach().numpy() for model in models for value in model.state_dict().values()]
    numbers = [torch.rand(1).item(), float(np.random.rand())]
    print(json.dumps({"weights": digest(weights), "record": digest([np.array(record)]), "next": numbers}))
