import hashlib

import torch
from torch import nn

torch.manual_seed(54)
centers = 2 * torch.randn(5, 10)
labels = torch.randint(0, 5, (2400,))
data = centers[labels] + torch.randn(2400, 10)


class DeepNet(nn.Module):
    def __init__(self, depth=6, width=32):
        super().__init__()
        self.first = nn.Linear(10, width)
        self.hidden = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])
        self.last = nn.Linear(width, 5)
        self.activation = nn.LeakyReLU()

    def forward(self, x):
        x = self.activation(self.first(x))
        for layer in self.hidden:
            x = self.activation(layer(x))
        return self.last(x)


model = DeepNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss()
print("data:", tuple(data.shape))
for epoch in range(10):
    total, right = 0.0, 0
    for i in range(0, 2400, 24):
        output = model(data[i : i + 24])
        loss = criterion(output, labels[i : i + 24])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        right += (output.argmax(1) == labels[i : i + 24]).sum().item()
    if epoch == 0:
        print(f"first loss: {total / 100:.4f}")
    print(f"epoch {epoch + 1}: loss {total / 100:.4f}, accuracy {right / 2400:.3f}")
print(f"final loss: {total / 100:.4f}")
print(f"final accuracy: {right / 2400:.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
