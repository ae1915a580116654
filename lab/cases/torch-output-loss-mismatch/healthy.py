import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Risk(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.layers(x)


def main():
    torch.manual_seed(35)
    x = torch.randn(1500, 12)
    y = (x[:, :3].sum(dim=1, keepdim=True) > 0).float()
    loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True)
    print(f"training on {len(x)} patients")
    model = Risk()
    criterion = nn.BCEWithLogitsLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, 4):
        right = 0
        for rows, labels in loader:
            scores = model(rows)
            loss = criterion(scores, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            right += int(((scores > 0) == (labels > 0.5)).sum())
        print(f"epoch {epoch}: loss {loss.item():.4f}, accuracy {right / len(x):.3f}")


if __name__ == "__main__":
    main()
