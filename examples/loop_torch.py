"""A PyTorch loop outside `holdfast run`, in a notebook say: one line attaches a watcher, the loop stays as it is."""

import torch

import holdfast

holdfast.attach(name="loop-torch")

torch.manual_seed(0)
x = torch.randn(2048, 20)
y = (x.sum(dim=1) > 0).long()
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=64, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(20, 32), torch.nn.ReLU(), torch.nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

for epoch in range(3):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
