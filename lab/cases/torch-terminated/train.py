import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(nn.Module):
    def __init__(self, features=128, code=16):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(features, 256), nn.ReLU(), nn.Linear(256, code))
        self.decoder = nn.Sequential(nn.Linear(code, 256), nn.ReLU(), nn.Linear(256, features))

    def forward(self, x):
        return self.decoder(self.encoder(x))


def main():
    torch.manual_seed(2)
    x = torch.randn(16000, 16) @ torch.randn(16, 128)
    loader = DataLoader(TensorDataset(x), batch_size=64, shuffle=True)
    model = Autoencoder()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    print(f"training on {len(x)} vectors")
    for epoch in range(1, 9):
        total = 0.0
        for (batch,) in loader:
            loss = nn.functional.mse_loss(model(batch), batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch}: loss {total / len(loader):.4f}")
    torch.save(model.state_dict(), "autoencoder.pt")


if __name__ == "__main__":
    main()
