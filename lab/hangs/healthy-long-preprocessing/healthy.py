import collections
import random
import time

import torch
from torch import nn


def count_words(seconds):
    """As long as a large corpus would take."""
    words, counts, ends = random.Random(3), collections.Counter(), time.monotonic() + seconds
    while time.monotonic() < ends:
        for _ in range(1000):
            counts[words.randrange(5000)] += 1
    return counts


def main():
    torch.set_num_threads(1)
    vocabulary = count_words(65)
    print(f"vocabulary of {len(vocabulary)}", flush=True)
    model = nn.EmbeddingBag(5000, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(200):
        loss = model(torch.randint(0, 5000, (32, 10))).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
