"""PyTorch loops whose turns are counted, or end, in other ways than most. They know nothing of Holdfast. `resume_torch_turns.py KIND`"""

import hashlib
import json
import os
import sys
import time
from itertools import count

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset
from tqdm import tqdm, trange

SAMPLES, BATCH, EPOCHS = 640, 16, int(os.environ.get("EPOCHS", "8"))
PAUSE_S = float(os.environ.get("STEP_PAUSE_S", "0.006"))
np.random.seed(4)
torch.manual_seed(4)
torch.set_num_threads(1)
x, y = torch.randn(SAMPLES, 8), torch.randn(SAMPLES, 1)


def network():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.1), nn.Linear(16, 1))


def trained(model, optimizer, inputs, targets):
    loss = F.mse_loss(model(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    time.sleep(PAUSE_S)
    return loss.item()


def held_bar():
    """The bar that counts the epochs is held by a variable, which is told the loss."""
    model, losses = network(), []
    optimizer, loader = (
        torch.optim.Adam(model.parameters(), lr=1e-2),
        DataLoader(TensorDataset(x, y), BATCH, shuffle=True),
    )
    with trange(EPOCHS, disable=None) as bar:
        for epoch in bar:
            inner = tqdm(loader, desc=f"epoch {epoch}", leave=False, disable=None)
            for inputs, targets in inner:
                losses.append(trained(model, optimizer, inputs, targets))
                inner.set_postfix(loss=losses[-1])
            bar.set_postfix(loss=losses[-1])
    return [model], losses


def numbered_folds():
    """A model for each fold of a list."""
    models, losses, folds = [], [], torch.randperm(SAMPLES).chunk(3)
    for fold, held_out in enumerate(folds, start=1):
        rows = torch.cat([one for one in folds if one is not held_out]).tolist()
        model, loader = network(), DataLoader(Subset(TensorDataset(x, y), rows), BATCH, shuffle=True)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for _ in range(max(1, EPOCHS // 2)):
            for inputs, targets in loader:
                loss = trained(model, optimizer, inputs, targets)
                losses.append((fold, loss))
        models.append(model)
    return models, losses


def cleared_at_the_end():
    """No loader: rows are drawn, the next ones before the backward pass; gradients are cleared when the weights have changed."""
    model, losses, step = network(), [], 0
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)

    def drawn():
        rows = torch.randint(SAMPLES, (BATCH,))
        return x[rows], y[rows]

    inputs, targets = drawn()
    while True:
        for _ in range(2):
            loss = F.mse_loss(model(inputs), targets) / 2
            inputs, targets = drawn()
            loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        time.sleep(PAUSE_S)
        step += 1
        if step >= EPOCHS * SAMPLES // BATCH:
            return [model], losses


def counted():
    """Epochs are counted without an end, and so are the turns of a game that is played before there is enough to train on."""
    model, losses, seen = network(), [], []
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for game in count(1):
        for turn in count():
            seen.append(torch.randint(SAMPLES, ()).item())
            if len(seen) >= 60:
                rows = torch.tensor(seen)[torch.randperm(len(seen))[:BATCH]]
                loss = trained(model, optimizer, x[rows], y[rows])
                losses.append((game, turn, loss))
            if turn >= 16 + game % 3:
                break
        if len(losses) >= EPOCHS * 40:
            return [model], losses


def validated_by_workers():
    """Workers that are kept from epoch to epoch, also for a validation that comes after the training of each."""
    data, model, losses = TensorDataset(x, y), network(), []
    loader = DataLoader(data, BATCH, shuffle=True, num_workers=1, persistent_workers=True)
    held_out = DataLoader(Subset(data, range(64)), BATCH, num_workers=1, persistent_workers=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(EPOCHS):
        for inputs, targets in loader:
            losses.append(trained(model, optimizer, inputs, targets))
        with torch.no_grad():
            losses.append(sum(F.mse_loss(model(inputs), targets).item() for inputs, targets in held_out))
    return [model], losses


def passes_in_a_function():
    """The optimizer calls a function that clears the gradients and makes them, several times a step; no loader."""
    model, losses = network(), []
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=3)
    for _ in range(EPOCHS * 10):
        rows = torch.randint(SAMPLES, (BATCH,))

        def passed():
            optimizer.zero_grad()
            loss = F.mse_loss(model(x[rows]), y[rows])  # noqa: B023 - called in this turn
            loss.backward()
            losses.append(loss.item())
            return loss

        optimizer.step(passed)
        time.sleep(PAUSE_S)
    return [model], losses


def sum_read_before_the_call():
    """What a call returns is added to a number that was read before it."""
    model, total, losses = network(), 0.0, []
    optimizer, loader = (
        torch.optim.Adam(model.parameters(), lr=1e-2),
        DataLoader(TensorDataset(x, y), BATCH, shuffle=True),
    )

    def one_epoch():
        found = 0.0
        for inputs, targets in loader:
            found += trained(model, optimizer, inputs, targets)
        return found

    for epoch in range(EPOCHS):
        total += one_epoch()
        losses.append((epoch, one_epoch_of_rows(model, optimizer)))
    return [model], [total, losses]


def one_epoch_of_rows(model, optimizer):
    found = 0.0
    for begin in range(0, 4 * BATCH, BATCH):
        found += trained(model, optimizer, x[begin : begin + BATCH], y[begin : begin + BATCH]) * BATCH
    return found


def listed_folds():
    """Loops over a list, a dict and a zip: in each turn another model is trained on other data."""
    losses, models = {}, []
    rows = torch.randperm(SAMPLES).chunk(3)
    splits = [(torch.cat([one for one in rows if one is not held]), held) for held in rows]
    widths = {"narrow": 8, "wide": 24}
    for name, width in widths.items():
        for (seen, held), rate in zip(splits, (1e-2, 5e-3, 1e-3)):
            model = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, 1))
            loader = DataLoader(TensorDataset(x[seen], y[seen]), BATCH, shuffle=True)
            optimizer = torch.optim.Adam(model.parameters(), lr=rate)
            for _ in range(max(2, EPOCHS // 4)):
                for inputs, targets in loader:
                    losses.setdefault(name, []).append(trained(model, optimizer, inputs, targets))
            with torch.no_grad():
                losses[name].append(F.mse_loss(model(x[held]), y[held]).item())
            models.append(model)
    return models, losses


def data_of_each_turn():
    """Made with numbers that are drawn in the turn, in a `while`; some are drawn at its end, too."""
    model, losses, level = network(), [], 0
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    while level < EPOCHS:
        data = TensorDataset(x + (1 + level) * torch.randn(SAMPLES, 8), y)
        for inputs, targets in DataLoader(data, BATCH, shuffle=True):
            losses.append(trained(model, optimizer, inputs, targets))
        losses.append(torch.rand(1).item())
        level += 1
    return [model], losses


class Redrawn(Dataset):
    """Its order is drawn anew after each epoch, by itself. It cannot be hashed."""

    __hash__ = None

    def __init__(self):
        self.order, self.rates = np.arange(SAMPLES), iter([1e-2, 8e-3, 6e-3, 4e-3, 3e-3, 2e-3, 1e-3, 1e-4])

    def __len__(self):
        return SAMPLES

    def __getitem__(self, number):
        return x[self.order[number]], y[self.order[number]]

    def draw(self):
        np.random.shuffle(self.order)


class Runner:
    """Its turns are counted by an attribute."""

    def __init__(self):
        self.model, self.data, self.losses = network(), Redrawn(), []
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-2)

    def run(self):
        for self.epoch in range(EPOCHS):
            for group in self.optimizer.param_groups:
                group["lr"] = next(self.data.rates)
            for inputs, targets in DataLoader(self.data, BATCH):
                self.losses.append((self.epoch, trained(self.model, self.optimizer, inputs, targets)))
            self.data.draw()


def redrawn_order():
    runner = Runner()
    runner.run()
    return [runner.model], runner.losses


def asked_again():
    """So many steps: an iterator that is over is made anew, and asked at another place."""
    model, losses = network(), []
    optimizer, loader = (
        torch.optim.Adam(model.parameters(), lr=1e-2),
        DataLoader(TensorDataset(x[:64], y[:64]), BATCH, shuffle=True),
    )
    batches = iter(loader)
    for _ in range(EPOCHS * SAMPLES // BATCH):
        try:
            inputs, targets = next(batches)
        except StopIteration:
            batches = iter(loader)
            inputs, targets = next(batches)
        losses.append(trained(model, optimizer, inputs, targets))
    return [model], losses


KINDS = {
    kind.__name__: kind
    for kind in (
        held_bar, numbered_folds, cleared_at_the_end, counted, validated_by_workers, passes_in_a_function,
        sum_read_before_the_call, listed_folds, data_of_each_turn, redrawn_order, asked_again,
    )
}  # fmt: skip
models, record = KINDS[sys.argv[1]]()
weights = hashlib.sha256()
for model in models:
    for tensor in model.state_dict().values():
        weights.update(tensor.numpy().tobytes())
print(json.dumps({"weights": weights.hexdigest(), "record": record, "next": torch.rand(2).tolist()}))
