import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(20)

USERS, ITEMS = 2000, 500


class Recommender(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.users, self.items = nn.Embedding(USERS, width), nn.Embedding(ITEMS, width)

    def forward(self, user, item):
        return (self.users(user) * self.items(item)).sum(dim=1)


user = torch.randint(0, USERS, (60000,))
item = torch.randint(0, ITEMS, (60000,))
rating = torch.sin(user * 0.01) * torch.cos(item * 0.05)
loader = DataLoader(TensorDataset(user, item, rating), batch_size=256, shuffle=True)
print(f"training on {len(rating)} ratings")

model = Recommender()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(1, 7):
    for users, items, ratings in loader:
        loss = nn.functional.mse_loss(model(users, items), ratings)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")

torch.save(model.state_dict(), "recommender.pt")
