import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(205)

label = torch.randint(0, 8, (2000,))
image = 0.4 * torch.rand(2000, 64)
image.view(2000, 8, 8)[torch.arange(2000), label] += 0.6
loader = DataLoader(TensorDataset(image, label), batch_size=40, shuffle=True)
print("batches:", len(loader))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(64, 48)
        self.out = nn.Linear(48, 8)

    def forward(self, x):
        return torch.log_softmax(self.out(torch.relu(self.hidden(x))), dim=1)


model = Net()
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)

for epoch in range(6):
    total = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / len(loader):.4f}")
print("over classes")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
