import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

BATCH = 64


class Scans(Dataset):
    def __len__(self):
        return 512

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(index)
        label = index % 2
        return torch.rand(3, 128, 128, generator=generator) + 0.2 * label, label


def main():
    torch.manual_seed(10)
    loader = DataLoader(Scans(), batch_size=BATCH, shuffle=True, num_workers=2)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 5, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(128, 2)
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    print(f"training on {len(loader.dataset)} scans")
    for step, (scans, labels) in enumerate(loader, 1):
        loss = nn.functional.cross_entropy(model(scans), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(f"step {step}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
