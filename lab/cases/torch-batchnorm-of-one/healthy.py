import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def molecules(count=1025, features=48):
    generator = torch.Generator().manual_seed(29)
    x = torch.rand(count, features, generator=generator)
    return TensorDataset(x, x[:, :5].sum(dim=1, keepdim=True))


def main():
    torch.manual_seed(29)
    data = molecules()
    loader = DataLoader(data, batch_size=64, shuffle=True, drop_last=True)
    print(f"training on {len(data)} molecules")
    model = nn.Sequential(
        nn.Linear(48, 64),
        nn.BatchNorm1d(64),
        nn.ReLU(),
        nn.Linear(64, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Linear(32, 1),
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, 4):
        model.train()
        total = 0.0
        for x, y in loader:
            loss = nn.functional.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(x)
        print(f"epoch {epoch}: loss {total / len(data):.4f}")


if __name__ == "__main__":
    main()
