import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(107)

users, items = 5000, 3000
user = torch.randint(0, users, (20000,))
item = (torch.rand(20000) ** 3 * items).long()
rating = ((user % 7) - (item % 5)).float() * 0.5
u = nn.Embedding(users, 8, sparse=True)
v = nn.Embedding(items, 8, sparse=True)
model = nn.ModuleDict({"user_vectors": u, "item_vectors": v})
nn.init.normal_(u.weight, std=0.3)
nn.init.normal_(v.weight, std=0.3)
optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.02)
for epoch in range(4):
    total = 0.0
    for part in torch.randperm(20000).split(100):
        predicted = (u(user[part]) * v(item[part])).sum(dim=1)
        loss = F.mse_loss(predicted, rating[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch}: {total / 200:.4f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
