"""PyTorch loops whose state cannot be taken exactly where they ask for data, and what is said then. They train as ever."""

import hashlib
import itertools
import json
import sys
import threading
import time

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

torch.manual_seed(4)
torch.set_num_threads(1)
STEPS = 60
loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8, shuffle=True)
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)


def update(batch):
    optimizer.zero_grad()
    loss = F.mse_loss(model(batch[0]), batch[1])
    loss.backward()
    optimizer.step()
    time.sleep(0.01)
    return loss.item()


def train_one_epoch():
    total = 0.0
    for batch in loader:
        total += update(batch)
    return total


def sum_read_in_a_while():
    """In a `while`, whose turns begin by nothing that could be told what was read."""
    total, epoch = 0.0, 0
    while epoch < STEPS // 8:
        total += train_one_epoch()
        epoch += 1
    return total


def added_to_a_hash():
    digest = hashlib.sha256()
    for epoch in range(STEPS // 8):
        for batch in loader:
            digest.update(str(update(batch)).encode())
    return digest.hexdigest()


def counted_by_zip():
    for _ in range(3):
        for step, batch in zip(range(5), loader):
            update(batch)


def counted_by_islice():
    for epoch in range(12):
        for batch in itertools.islice(loader, 5):
            update(batch)


def beside_a_cycle():
    """The smaller set of data begins anew within the epoch: `cycle` keeps its batches and gives them again."""
    other = DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 1)), batch_size=8, shuffle=True)
    for epoch in range(STEPS // 8):
        for batch, beside in zip(loader, itertools.cycle(other)):
            update([torch.cat(parts) for parts in zip(batch, beside)])


def epoch_written_over():
    for epoch in range(STEPS // 8):
        epoch = epoch * 2
        for batch in loader:
            update(batch)


def graph_kept_for_later():
    carried = model(torch.randn(1, 4)).mean()
    for epoch in range(STEPS // 8):
        for batch in loader:
            optimizer.zero_grad()
            (F.mse_loss(model(batch[0]), batch[1]) + 0.1 * carried).backward()
            optimizer.step()
            carried = model(batch[0]).mean()
            time.sleep(0.01)


def inside_an_expression():
    return sum(sum(update(batch) for batch in loader) for _ in range(STEPS // 8))


def read_ahead_by_a_thread():
    import queue

    waiting = queue.Queue(2)

    def read():
        for _ in range(STEPS // 8):
            for batch in loader:
                waiting.put(batch)
        waiting.put(None)

    threading.Thread(target=read, daemon=True).start()
    while (batch := waiting.get()) is not None:
        update(batch)


def second_of_two_loops():
    for batch in loader:
        update(batch)
    time.sleep(0.2)  # so that what is asked from now on is asked in the second
    open("ask", "w").close()
    for epoch in range(STEPS // 8):
        for batch in loader:
            update(batch)


class Drawn(IterableDataset):
    def __iter__(self):
        for _ in range(8 * STEPS):
            yield torch.randn(4), torch.randn(1)


def numbers_shared_with_the_data():
    for inputs, targets in DataLoader(Drawn(), batch_size=8):
        update((F.dropout(inputs, 0.2), targets))


KINDS = {
    one.__name__: one
    for one in (
        sum_read_in_a_while, counted_by_zip, counted_by_islice, beside_a_cycle, epoch_written_over,
        graph_kept_for_later, inside_an_expression, read_ahead_by_a_thread, second_of_two_loops,
        numbers_shared_with_the_data, added_to_a_hash,
    )
}  # fmt: skip

if __name__ == "__main__":
    if sys.argv[1] != "second_of_two_loops":
        open("ask", "w").close()
    record = KINDS[sys.argv[1]]()
    print(json.dumps({"weights": [value.tolist() for value in model.state_dict().values()], "record": record}))
