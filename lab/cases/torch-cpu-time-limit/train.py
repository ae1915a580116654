import torch
from torch import nn

EPOCHS = 4000


def spirals(points=4000):
    radius = torch.linspace(0.1, 1, points)
    label = torch.arange(points) % 2
    angle = radius * 12 + label * torch.pi + torch.randn(points) * 0.1
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), label


def main():
    torch.set_num_threads(1)
    torch.manual_seed(6)
    x, y = spirals()
    print(f"training on {len(x)} points for {EPOCHS} epochs")
    model = nn.Sequential(nn.Linear(2, 256), nn.Tanh(), nn.Linear(256, 256), nn.Tanh(), nn.Linear(256, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(1, EPOCHS + 1):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch % 20 == 0:
            print(f"epoch {epoch}: loss {loss.item():.4f}")
    torch.save(model.state_dict(), "spirals.pt")


if __name__ == "__main__":
    main()
