import sys

import torch
from torch import nn

THRESHOLD = 0.6


def main():
    torch.manual_seed(18)
    x = torch.randn(3000, 30)
    y = (x[:, 0] + 0.8 * torch.randn(3000) > 0).long()
    train_x, train_y, test_x, test_y = x[:2500], y[:2500], x[2500:], y[2500:]
    print(f"training on {len(train_x)} rows")
    model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(1, 6):
        for rows, labels in zip(train_x.split(50), train_y.split(50)):
            loss = nn.functional.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")
    with torch.no_grad():
        accuracy = (model(test_x).argmax(dim=1) == test_y).float().mean().item()
    print(f"accuracy {accuracy:.3f}")
    if accuracy < THRESHOLD:
        print(f"validation below threshold {THRESHOLD}")
        sys.exit(3)
    torch.save(model.state_dict(), "model.pt")


if __name__ == "__main__":
    main()
