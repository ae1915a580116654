import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(144)


class Adapted(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) * 0.1)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


class Language(nn.Module):
    def __init__(self, tokens=40, width=32):
        super().__init__()
        self.embedding = nn.Embedding(tokens, width)
        self.layers = nn.ModuleList([Adapted(nn.Linear(width, width)) for _ in range(2)])
        self.register_buffer("mask", torch.full((12, 12), float("-inf")).triu(1))
        self.out = nn.Linear(width, tokens, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, x):
        x = self.embedding(x)
        scores = x @ x.transpose(1, 2) / 6 + self.mask
        x = torch.softmax(scores, dim=-1) @ x
        for layer in self.layers:
            x = torch.relu(layer(x)) + x
        return self.out(x)


model = Language()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3)
text = (torch.randint(0, 40, (1600, 1)) + torch.randint(1, 3, (1600, 13)).cumsum(1)) % 40
for epoch in range(6):
    for part in torch.randperm(1600).split(40):
        logits = model(text[part, :-1])
        loss = F.cross_entropy(logits.reshape(-1, 40), text[part, 1:].reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
