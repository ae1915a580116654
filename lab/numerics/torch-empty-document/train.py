import hashlib

import torch
from torch import nn

torch.manual_seed(45)
vocabulary, length = 200, 20
lengths = torch.randint(4, length + 1, (2000,))
documents = torch.randint(1, vocabulary, (2000, length))
documents[torch.arange(length)[None, :] >= lengths[:, None]] = 0
sentiment = ((documents < 40) & (documents > 0)).sum(1) > 0.2 * lengths
documents[1111] = 0


class BagOfWords(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 16, padding_idx=0)
        self.classifier = nn.Linear(16, 2)

    def forward(self, tokens):
        present = (tokens != 0).unsqueeze(-1).float()
        pooled = (self.embedding(tokens) * present).sum(dim=1) / present.sum(dim=1)
        return self.classifier(pooled)


model = BagOfWords()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
train, test = slice(0, 1600), slice(1600, 2000)
labels = sentiment.long()


def evaluate():
    with torch.no_grad():
        return criterion(model(documents[test]), labels[test]).item()


print("documents:", len(documents))
print(f"first loss: {evaluate():.4f}")
step = 0
for epoch in range(6):
    for start in range(0, 1600, 32):
        step += 1
        optimizer.zero_grad()
        loss = criterion(model(documents[start : start + 32]), labels[start : start + 32])
        loss.backward()
        optimizer.step()
        if step in (34, 35):
            print(f"step {step}: loss {loss.item():.4f}")
print(f"final loss: {evaluate():.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
