import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

SIDE = 32
CLASSES = 10


class SmallCNN(nn.Module):
    """Two convolutions and a linear head."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, padding=1)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.dropout = nn.Dropout(0.25)
        self.fc = nn.Linear(32 * 8 * 8, CLASSES)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        x = self.dropout(x.flatten(start_dim=1))
        return self.fc(x)


def main():
    torch.manual_seed(1)
    images = torch.rand(512, 3, SIDE, SIDE)
    labels = torch.randint(0, CLASSES, (512,))
    loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)
    print(f"training on {len(images)} images")

    model = SmallCNN()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(1, 4):
        running = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            running += loss.item()
        print(f"epoch {epoch}: loss {running / len(loader):.4f}")


if __name__ == "__main__":
    main()
