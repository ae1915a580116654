import csv
import hashlib

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

torch.manual_seed(41)


def write_table(path, count=2000):
    x = torch.randn(count, 5)
    y = 2 * x[:, 0] - x[:, 2] + 0.1 * torch.randn(count)
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        for i in range(count):
            row = [f"{v:.5f}" for v in x[i].tolist()]
            if i in (350, 351, 1004):
                row[3] = ""
            writer.writerow([*row, f"{y[i].item():.5f}"])


class Wells(Dataset):
    def __init__(self, path):
        with open(path) as file:
            rows = [[float(v) if v else float("nan") for v in row] for row in csv.reader(file)]
        self.rows = torch.tensor(rows)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        return self.rows[index, :5], self.rows[index, 5:]


write_table("wells.csv")
dataset = Wells("wells.csv")
train_set = torch.utils.data.Subset(dataset, range(1600))
valid_x, valid_y = dataset.rows[1600:, :5], dataset.rows[1600:, 5:]
loader = DataLoader(train_set, batch_size=32, shuffle=False)
print(f"{len(train_set)} wells, {len(loader)} batches")

model = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


def validate():
    model.eval()
    with torch.no_grad():
        value = criterion(model(valid_x), valid_y).item()
    model.train()
    return value


print(f"first loss: {validate():.4f}")
for epoch in range(8):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: validation {validate():.4f}")
print(f"final loss: {validate():.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
