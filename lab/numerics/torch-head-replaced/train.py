import hashlib

import torch
from torch import nn

torch.manual_seed(73)


class Net(nn.Module):
    def __init__(self, outputs=100):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(20, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
        self.fc = nn.Linear(24, outputs)

    def forward(self, x):
        return self.fc(self.features(x))


labels = torch.randint(0, 5, (2000,))
x = torch.randn(5, 20)[labels] + 0.8 * torch.randn(2000, 20)
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
model.fc = nn.Linear(24, 5)
before = model.fc.weight.detach().clone()
print("classes:", model.fc.out_features)
for epoch in range(10):
    total = 0.0
    for rows in torch.randperm(2000).split(40):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), labels[rows])
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first loss: {total / 50:.4f}")
print(f"final loss: {total / 50:.4f}")
print("head moved:", not torch.equal(before, model.fc.weight.detach()))
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
