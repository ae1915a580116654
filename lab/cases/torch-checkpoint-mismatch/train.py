from pathlib import Path

import torch
from torch import nn

CLASSES = 5


class Classifier(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.head = nn.Linear(64, classes)

    def forward(self, x):
        return self.head(self.backbone(x))


def pretrain(path):
    torch.save(Classifier(classes=1000).state_dict(), path)


def load_backbone(model, path):
    weights = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(weights)


def main():
    torch.manual_seed(15)
    path = Path("imagenet.pt")
    pretrain(path)
    model = Classifier(CLASSES)
    print(f"fine-tuning for {CLASSES} classes")
    load_backbone(model, path)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x = torch.randn(1000, 32)
    y = torch.randint(0, CLASSES, (1000,))
    for epoch in range(1, 4):
        for rows, labels in zip(x.split(50), y.split(50)):
            loss = nn.functional.cross_entropy(model(rows), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
