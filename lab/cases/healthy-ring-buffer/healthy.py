import numpy as np
import torch
from torch import nn


class Ring:
    def __init__(self, length, width):
        self.states, self.count = np.zeros((length, width), "float32"), 0

    def push(self, rows):
        start = self.count % len(self.states)
        self.states[start : start + len(rows)] = rows
        self.count += len(rows)

    def sample(self, size):
        chosen = np.random.randint(0, min(self.count, len(self.states)), size)
        return torch.from_numpy(self.states[chosen])


def main():
    torch.set_num_threads(1)
    ring = Ring(200_000, 512)
    model = nn.Sequential(nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for turn in range(1600):
        ring.push(np.random.rand(160, 512))
        loss = model(ring.sample(128)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if turn % 200 == 0:
            print(f"turn {turn}: {ring.count} states", flush=True)


if __name__ == "__main__":
    main()
