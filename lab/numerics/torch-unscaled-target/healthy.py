import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(61)
x = torch.randn(1600, 9)
population = (250000 + 80000 * x[:, 0] + 30000 * x[:, 4]).unsqueeze(1)
population = (population - population.mean()) / population.std()
print("mean population:", population.mean().item())
loader = DataLoader(TensorDataset(x, population), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(9, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for epoch in range(8):
    total = 0.0
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first loss: {total / 50:.4f}")
    print(f"epoch {epoch}: {total / 50:.4f}")
print(f"final loss: {total / 50:.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
