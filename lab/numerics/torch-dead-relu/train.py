import hashlib

import torch
from torch import nn

torch.manual_seed(55)
centers = torch.randn(4, 8)
labels = torch.randint(0, 4, (2000,))
x = centers[labels] + 0.4 * torch.randn(2000, 8)


def init_weights(module):
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        module.bias.data.fill_(-10.0)


model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
model.apply(init_weights)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
print("rows:", len(x))
for epoch in range(10):
    order = torch.randperm(2000)
    losses = []
    for part in order.split(25):
        loss = criterion(model(x[part]), labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    if epoch == 0:
        print(f"first loss: {sum(losses) / len(losses):.4f}")
    print(f"epoch {epoch}: {sum(losses) / len(losses):.4f}")
print(f"final loss: {sum(losses) / len(losses):.4f}")
print(f"accuracy: {(model(x).argmax(1) == labels).float().mean().item():.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
