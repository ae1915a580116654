import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

# One for each core of the node this was written on.
WORKERS = 2


def main():
    torch.set_num_threads(1)
    torch.manual_seed(59)
    x = torch.randn(2000, 16)
    data = TensorDataset(x, x.sum(dim=1, keepdim=True))
    loader = DataLoader(data, batch_size=20, shuffle=True, num_workers=WORKERS)
    print(f"training on {len(data)} rows with {WORKERS} workers")
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(model.parameters())
    for epoch in range(1, 3):
        for rows, targets in loader:
            loss = nn.functional.mse_loss(model(rows), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
