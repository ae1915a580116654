import torch
from torch import nn

TWINS_AT = 1100


class Embedder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 8))

    def forward(self, x):
        return self.layers(x)


def distance(a, b):
    return ((a - b) ** 2).sum(dim=1).add(1e-9).sqrt()


def main():
    torch.manual_seed(39)
    left, right = torch.randn(2000, 10), torch.randn(2000, 10)
    right[TWINS_AT] = left[TWINS_AT]
    same = (torch.arange(2000) % 2).float()
    print(f"training on {len(left)} pairs")
    model = Embedder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    with torch.autograd.set_detect_anomaly(True):
        for start in range(0, 2000, 40):
            part = slice(start, start + 40)
            apart = distance(model(left[part]), model(right[part]))
            loss = (same[part] * apart + (1 - same[part]) * torch.relu(2 - apart)).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if start % 400 == 0:
                print(f"pair {start}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
