import hashlib

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

torch.manual_seed(50)
centers = torch.randn(6, 16)
labels = torch.randint(0, 6, (2400,))
data = centers[labels] + 0.5 * torch.randn(2400, 16)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 64)
        self.fc2 = nn.Linear(64, 6)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


model = Net()
optimizer = optim.SGD(model.parameters(), lr=1e-7, momentum=0.9)
print("data:", tuple(data.shape))
for epoch in range(10):
    running, right = 0.0, 0
    for i in range(0, 2400, 24):
        inputs, targets = data[i : i + 24], labels[i : i + 24]
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = F.cross_entropy(outputs, targets)
        loss.backward()
        optimizer.step()
        running += loss.item()
        right += (outputs.argmax(1) == targets).sum().item()
    if epoch == 0:
        print(f"first loss: {running / 100:.5f}")
    print(f"[{epoch + 1}] loss: {running / 100:.5f}")
print(f"final loss: {running / 100:.5f}")
print(f"accuracy: {right / 2400:.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
