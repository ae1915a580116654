import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(67)
classes, each = 6, 400
centers = torch.randn(classes, 12)
labels = torch.arange(classes).repeat_interleave(each)
data = centers[labels] + 0.5 * torch.randn(classes * each, 12)
test_labels = torch.randint(0, classes, (300,))
test_data = centers[test_labels] + 0.5 * torch.randn(300, 12)
loader = DataLoader(TensorDataset(data, labels), batch_size=40)
print("batches:", len(loader))

model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, classes))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(8):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first loss: {total / len(loader):.4f}")
    accuracy = (model(test_data).argmax(1) == test_labels).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(loader):.4f}, test accuracy {accuracy:.3f}")
print(f"final loss: {total / len(loader):.4f}")
print(f"final accuracy: {accuracy:.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
