import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(56)
x = torch.randn(2000, 6)
y = (x[:, :1] * x[:, 1:2] > 0).float()
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)


class BinaryNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer_1 = nn.Linear(6, 64)
        self.layer_2 = nn.Linear(64, 64)
        self.layer_out = nn.Linear(64, 1)
        self.relu = nn.ReLU()
        self.final = nn.Softmax(dim=1)

    def forward(self, inputs):
        h = self.relu(self.layer_1(inputs))
        h = self.relu(self.layer_2(h))
        return self.final(self.layer_out(h))


model = BinaryNet()
criterion = nn.BCELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
print("positive:", y.mean().item())
for e in range(1, 11):
    epoch_loss, epoch_acc = 0.0, 0.0
    for X_batch, y_batch in loader:
        optimizer.zero_grad()
        y_pred = model(X_batch)
        loss = criterion(y_pred, y_batch)
        acc = ((y_pred > 0.5).float() == y_batch).float().mean()
        loss.backward()
        optimizer.step()
        epoch_loss += loss.item()
        epoch_acc += acc.item()
    if e == 1:
        print(f"first loss: {epoch_loss / len(loader):.5f}")
    print(f"Epoch {e:03}: | Loss: {epoch_loss / len(loader):.5f} | Acc: {epoch_acc / len(loader):.3f}")
print(f"final loss: {epoch_loss / len(loader):.5f}")
print(f"final accuracy: {epoch_acc / len(loader):.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
