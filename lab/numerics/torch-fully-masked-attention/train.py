import hashlib
import math

import torch
from torch import nn

torch.manual_seed(47)
length, dim = 10, 16
lengths = torch.randint(2, length + 1, (1600,))
tokens = torch.randint(1, 60, (1600, length))
tokens[torch.arange(length)[None, :] >= lengths[:, None]] = 0
label = (tokens == 5).any(dim=1).long() | (tokens == 6).any(dim=1).long() | (tokens == 7).any(dim=1).long()
tokens[995] = 0


class SelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.value = nn.Linear(dim, dim)

    def forward(self, x, padding):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / math.sqrt(dim)
        scores = scores.masked_fill(padding[:, None, :], float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        return weights @ self.value(x)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(60, dim)
        self.attention = SelfAttention()
        self.out = nn.Linear(dim, 2)

    def forward(self, tokens):
        x = self.embedding(tokens)
        x = x + self.attention(x, tokens == 0)
        return self.out(x.amax(dim=1))


model = Classifier()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
print("sequences:", len(tokens))
with torch.no_grad():
    print(f"first loss: {criterion(model(tokens[1280:]), label[1280:]).item():.4f}")
for epoch in range(8):
    for start in range(0, 1280, 32):
        loss = criterion(model(tokens[start : start + 32]), label[start : start + 32])
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
with torch.no_grad():
    print(f"final loss: {criterion(model(tokens[1280:]), label[1280:]).item():.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
