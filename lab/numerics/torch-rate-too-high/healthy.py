import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(48)
x = torch.randn(2000, 20)
y = x @ torch.randn(20, 1) + 3 + 0.1 * torch.randn(2000, 1)
train = DataLoader(TensorDataset(x[:1600], y[:1600]), batch_size=32, shuffle=True)
print("batches:", len(train))

model = nn.Linear(20, 1)
loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)


def test():
    with torch.no_grad():
        return loss_fn(model(x[1600:]), y[1600:]).item()


print(f"first loss: {test():.4f}")
for t in range(8):
    for X, Y in train:
        pred = model(X)
        loss = loss_fn(pred, Y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print(f"Epoch {t + 1}: test {test():.4f}")
print(f"final loss: {test():.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
