import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(114)

vocabulary, length = 30, 16
start = torch.randint(1, 10, (1200, 1))
tokens = (start + torch.arange(length) * torch.randint(1, 3, (1200, 1))) % (vocabulary - 1) + 1
lengths = torch.randint(6, length + 1, (1200,))
tokens[torch.arange(length)[None, :] >= lengths[:, None]] = 0


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, 32, padding_idx=0)
        self.position = nn.Parameter(0.02 * torch.randn(length, 32))
        layer = nn.TransformerEncoderLayer(32, 2, 64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.out = nn.Linear(32, vocabulary)

    def forward(self, x):
        size = x.shape[1]
        causal = torch.full((size, size), float("-inf")).triu(1)
        padding = torch.zeros(x.shape).masked_fill(x == 0, float("-inf"))
        h = self.embedding(x) + self.position[:size]
        return self.out(self.encoder(h, mask=causal, src_key_padding_mask=padding))


model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(5):
    for part in torch.randperm(1200).split(30):
        logits = model(tokens[part, :-1])
        loss = F.cross_entropy(logits.reshape(-1, vocabulary), tokens[part, 1:].reshape(-1), ignore_index=0)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
