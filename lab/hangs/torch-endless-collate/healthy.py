import random

import torch
from torch import nn
from torch.utils.data import DataLoader

WIDTH = 64
LONG_SENTENCE = 1001


class Corpus(torch.utils.data.Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, i):
        length = 60 if i == LONG_SENTENCE else random.Random(i).randint(5, 40)
        return [i % 50 + 1] * length


def pack(sentences):
    waiting, rows, row = list(sentences), [], []
    while waiting:
        if len(row) + len(waiting[0]) <= WIDTH:
            row += waiting.pop(0)
        else:
            if row:
                rows.append(row)
            row = []
    rows.append(row)
    return torch.tensor([row + [0] * (WIDTH - len(row)) for row in rows])


def main():
    torch.set_num_threads(1)
    print(f"packing into rows of {WIDTH}")
    model = nn.Sequential(nn.Embedding(51, 32), nn.Linear(32, 51))
    optimizer = torch.optim.Adam(model.parameters())
    for number, tokens in enumerate(DataLoader(Corpus(), batch_size=16, collate_fn=pack)):
        logits = model(tokens[:, :-1])
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if number % 20 == 0:
            print(f"batch {number}: {loss.item():.3f}", flush=True)


if __name__ == "__main__":
    main()
