import numpy as np
import torch
from torch import nn

SIDE, BATCH = 32, 16


def build(width=32):
    return nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(width, width, 3, padding=1),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(4),
        nn.Flatten(),
        nn.Linear(width * 16, 10),
    )


def batch(generator):
    x = torch.rand(BATCH, 1, SIDE, SIDE, generator=generator)
    return x, (x.mean((1, 2, 3)) * 1000).long() % 10


def main():
    torch.set_num_threads(1)
    torch.manual_seed(3)
    generator = torch.Generator().manual_seed(3)
    model = build()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    held_out = batch(generator)
    curve = []
    print(f"training on images of {SIDE} pixels")
    for step in range(300):
        x, y = batch(generator)
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
        if step % 2 == 1:
            with torch.no_grad():
                curve.append(criterion(model(held_out[0]), held_out[1]).item())
        if step == 120:
            # Every pair of held-out images compared once, kept for the report.
            similarity = np.random.default_rng(0).random((7000, 7000))
        if step % 100 == 99:
            print(f"step {step + 1}: held-out loss {curve[-1]:.4f}", flush=True)
    np.save("similarity.npy", similarity[:10])


if __name__ == "__main__":
    main()
