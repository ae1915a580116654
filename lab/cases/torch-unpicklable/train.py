import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


def standardise(signal):
    return (signal - signal.mean()) / (signal.std() + 1e-6)


class Signals(Dataset):
    def __init__(self, transform, count=480):
        self.transform = transform
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        signal = torch.randn(64, generator=generator).cumsum(0)
        return self.transform(signal), index % 2


def main():
    torch.manual_seed(27)
    signals = Signals(transform=lambda signal: standardise(signal))
    print(f"training on {len(signals)} signals")
    loader = DataLoader(signals, batch_size=32, num_workers=2, multiprocessing_context="spawn")
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(1, 3):
        for x, y in loader:
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
