import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

COUNT, SIDE, BATCH = 480, 224, 8


class Photos(Dataset):
    """Decoding is slow, so what was decoded is kept."""

    def __init__(self):
        self.decoded = {}

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        turned = int(torch.randint(0, 360, ()))
        key = (index, turned)
        if key not in self.decoded:
            self.decoded[key] = torch.rand(3, SIDE, SIDE)
        return self.decoded[key], index % 4


def main():
    torch.set_num_threads(1)
    torch.manual_seed(8)
    loader = DataLoader(Photos(), batch_size=BATCH, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(3, 12, 5, stride=2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 4)
    )
    optimizer = torch.optim.Adam(model.parameters())
    print(f"training on {COUNT} photos")
    for epoch in range(6):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    main()
