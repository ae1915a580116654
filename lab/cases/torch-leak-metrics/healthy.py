from collections import defaultdict

import torch
from torch import nn

BATCH, SIDE = 6, 96


class Meter:
    """Collects whatever is reported, by name."""

    def __init__(self):
        self.values = defaultdict(list)

    def update(self, **metrics):
        for name, value in metrics.items():
            self.values[name].append(value)

    def mean(self, name):
        recent = self.values[name][-50:]
        return sum(float(torch.as_tensor(value).mean()) for value in recent) / len(recent)


def build():
    return nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, padding=1))


def main():
    torch.set_num_threads(1)
    torch.manual_seed(69)
    model, meter = build(), Meter()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    print("training a segmenter")
    for step in range(1200):
        x = torch.rand(BATCH, 1, SIDE, SIDE)
        mask = (x > 0.5).long().squeeze(1)
        logits = model(x)
        loss = nn.functional.cross_entropy(logits, mask)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss=loss.item(), confidence=logits.mean().item())
        if step % 100 == 99:
            print(f"step {step + 1}: loss {meter.mean('loss'):.4f}", flush=True)


if __name__ == "__main__":
    main()
