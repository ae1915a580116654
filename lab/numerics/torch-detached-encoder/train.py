import hashlib

import torch
from torch import nn

torch.manual_seed(65)
tokens = torch.randint(0, 40, (2000, 15))
label = ((tokens == 3).sum(1) > (tokens == 4).sum(1)).long()


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(40, 6)
        self.encoder = nn.GRU(6, 8, batch_first=True)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        _, state = self.encoder(self.embedding(x))
        return self.head(state[-1].detach())


model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
criterion = nn.CrossEntropyLoss()
print("sentences:", len(tokens))
for epoch in range(10):
    total = 0.0
    for i in range(0, 2000, 40):
        loss = criterion(model(tokens[i : i + 40]), label[i : i + 40])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    if epoch == 0:
        print(f"first loss: {total / 50:.4f}")
    print(f"epoch {epoch}: {total / 50:.4f}")
print(f"final loss: {total / 50:.4f}")
print(f"accuracy: {(model(tokens).argmax(1) == label).float().mean().item():.3f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
