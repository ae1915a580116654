import torch
from torch import nn

SIDE = 192
BATCH = 2


class Segmenter(nn.Module):
    """Keeps full resolution all the way, as small objects need it."""

    def __init__(self, width=16):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(width, 1, 1),
        )

    def forward(self, x):
        return self.layers(x)


def main():
    torch.manual_seed(21)
    scans = torch.rand(64, 1, SIDE, SIDE)
    masks = (scans > 0.7).float()
    print(f"training on {len(scans)} scans, {BATCH} at a time")
    model = Segmenter()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    for x, y in zip(scans.split(BATCH), masks.split(BATCH)):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
