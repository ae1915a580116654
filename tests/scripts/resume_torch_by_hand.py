"""PyTorch loops that do by hand what others leave to a loader or an optimizer. `resume_torch_by_hand.py KIND`"""

import collections
import copy
import hashlib
import json
import os
import random
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F

EPOCHS = int(os.environ.get("EPOCHS", "8"))
PAUSE_S = float(os.environ.get("STEP_PAUSE_S", "0.006"))
random.seed(4)
torch.manual_seed(4)
torch.set_num_threads(1)


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.cell, self.out = nn.Embedding(20, 8), nn.GRU(8, 16, batch_first=True), nn.Linear(16, 20)

    def forward(self, words, hidden):
        found, hidden = self.cell(self.embedding(words), hidden)
        return self.out(F.dropout(found, 0.1)), hidden


def language_model():
    """Weights are updated by the script itself; a hidden state goes from batch to batch, and the rate shrinks."""
    source, rate, losses, model = torch.randint(0, 20, (4, 401)), 0.5, [], Words()
    for _ in range(EPOCHS):
        hidden, total = torch.zeros(1, 4, 16), 0.0
        for number, at in enumerate(range(0, 400, 10)):
            hidden = hidden.detach()
            model.zero_grad()
            found, hidden = model(source[:, at : at + 10], hidden)
            loss = F.cross_entropy(found.flatten(0, 1), source[:, at + 1 : at + 11].flatten())
            loss.backward()
            for parameter in model.parameters():
                parameter.data.add_(parameter.grad, alpha=-rate)
            total += loss.item()
            if number % 10 == 9:
                losses.append((number, total))
            time.sleep(PAUSE_S)
        rate /= 1.5
    return [model], losses


def replayed():
    """Some turns are played before the first step is trained on what was seen; gradients are cleared between the passes."""
    value = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2))
    target, seen, returns = copy.deepcopy(value), collections.deque(maxlen=200), []
    optimizer = torch.optim.Adam(value.parameters(), lr=1e-2)
    for turn in range(8 * EPOCHS):
        position, won = 0, 0.0
        for played in range(20):
            state = (position / 10, played / 20, 1.0)
            with torch.no_grad():
                greedy = int(value(torch.tensor(state)).argmax())
            move = random.randrange(2) if random.random() < 0.3 else greedy
            position += 1 if move else -1
            won += float(position == 4)
            seen.append((state, move, float(position == 4), (position / 10, (played + 1) / 20, 1.0)))
            if len(seen) < 50:
                continue
            states, moves, rewards, nexts = zip(*random.sample(seen, 16), strict=True)
            with torch.no_grad():
                wanted = torch.tensor(rewards) + 0.9 * target(torch.tensor(nexts)).max(1).values
            found = value(torch.tensor(states)).gather(1, torch.tensor(moves)[:, None]).squeeze(1)
            loss = F.smooth_l1_loss(found, wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(PAUSE_S)
        if turn % 5 == 0:
            target.load_state_dict(value.state_dict())
        returns.append(won)
    return [value, target], returns


def from_scratch():
    """No module, no optimizer, no call that clears gradients: weights are tensors, rows come from a generator of one's own."""
    rows = torch.randn(400, 2)
    wanted = rows @ torch.tensor([[2.0], [-3.4]]) + 4.2
    weight, bias = (0.01 * torch.randn(2, 1)).requires_grad_(), torch.zeros(1, requires_grad=True)

    def batches(size):
        order = list(range(len(rows)))
        random.shuffle(order)
        for begin in range(0, len(order), size):
            chosen = torch.tensor(order[begin : begin + size])
            yield rows[chosen], wanted[chosen]

    def update(inputs, targets):
        loss = ((inputs @ weight + bias - targets) ** 2 / 2).sum()
        loss.backward()
        with torch.no_grad():
            for one in (weight, bias):
                one -= 0.003 * one.grad
                one.grad.zero_()
        time.sleep(PAUSE_S)
        return loss.item()

    losses = []
    for _ in range(EPOCHS):
        total = 0.0
        for inputs, targets in batches(10):
            total += update(inputs, targets)
        losses.append(total)
    held = nn.Module()
    held.weight, held.bias = nn.Parameter(weight.detach()), nn.Parameter(bias.detach())
    return [held], losses


KINDS = {kind.__name__: kind for kind in (language_model, replayed, from_scratch)}  # fmt: skip
models, record = KINDS[sys.argv[1]]()
weights = hashlib.sha256()
for model in models:
    for tensor in model.state_dict().values():
        weights.update(tensor.numpy().tobytes())
print(json.dumps({"weights": weights.hexdigest(), "record": record, "next": [random.random(), torch.rand(1).item()]}))
