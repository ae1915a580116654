import hashlib

import torch
from torch import nn

torch.manual_seed(71)
readings = torch.randn(2400, 20)
labels = (readings[:, 0] * readings[:, 1] > 0).long()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
        self.classifier = nn.Linear(16, 2)

    def forward(self, x):
        return self.classifier(self.features(x))


model = Net()
for parameter in model.features.parameters():
    parameter.requires_grad = False
print("classes: 2")
optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=3e-3)
for epoch in range(12):
    right = 0
    for part in torch.randperm(2400).split(40):
        outputs = model(readings[part])
        loss = nn.functional.cross_entropy(outputs, labels[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        right += (outputs.argmax(1) == labels[part]).sum().item()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
print(f"accuracy: {right / 2400:.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
