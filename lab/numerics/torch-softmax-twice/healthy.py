import hashlib

import torch
import torch.nn.functional as F
from torch import nn, optim

torch.manual_seed(57)
classes = 10


def digits(count):
    label = torch.randint(0, classes, (count,))
    image = 0.5 * torch.rand(count, 1, 10, 10)
    image[torch.arange(count), 0, label] += 0.5
    return image, label


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3)
        self.fc1 = nn.Linear(8 * 4 * 4, 64)
        self.fc2 = nn.Linear(64, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc2(x)


x_train, y_train = digits(2400)
x_test, y_test = digits(400)
net = Net()
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
print("images:", tuple(x_train.shape))
for epoch in range(8):
    running_loss = 0.0
    for i in range(0, 2400, 24):
        optimizer.zero_grad()
        outputs = net(x_train[i : i + 24])
        loss = criterion(outputs, y_train[i : i + 24])
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    if epoch == 0:
        print(f"first loss: {running_loss / 100:.4f}")
    print(f"[{epoch + 1}] loss: {running_loss / 100:.4f}")
print(f"final loss: {running_loss / 100:.4f}")
print(f"accuracy: {(net(x_test).argmax(1) == y_test).float().mean().item():.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in net.state_dict().values())).hexdigest())
