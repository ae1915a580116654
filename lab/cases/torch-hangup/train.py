import torch
from torch import nn

torch.manual_seed(4)

CORPUS = ("the quick brown fox jumps over the lazy dog and then it sleeps under a tree until morning. " * 400).encode()
CONTEXT = 32

tokens = torch.tensor(list(CORPUS), dtype=torch.long)
print(f"training on {len(tokens)} characters")


class CharModel(nn.Module):
    def __init__(self, width=96):
        super().__init__()
        self.embed = nn.Embedding(256, width)
        self.gru = nn.GRU(width, width, batch_first=True)
        self.head = nn.Linear(width, 256)

    def forward(self, x):
        hidden, _ = self.gru(self.embed(x))
        return self.head(hidden)


model = CharModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(1, 401):
    starts = torch.randint(0, len(tokens) - CONTEXT - 1, (32,))
    windows = torch.stack([tokens[start : start + CONTEXT + 1] for start in starts])
    logits = model(windows[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, 256), windows[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 20 == 0:
        print(f"step {step}: loss {loss.item():.3f}")

torch.save(model.state_dict(), "char-model.pt")
