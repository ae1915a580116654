import hashlib

import torch
from torch import nn

torch.manual_seed(46)
signals = torch.randn(2000, 1, 32).cumsum(dim=-1) * 0.2
volatility = signals.diff(dim=-1).std(dim=-1)
target = (volatility * 5).squeeze(1)
signals[805] = 0.0
target[805] = 0.0


class Volatility(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 8, 5, bias=False)
        self.head = nn.Linear(8, 1)

    def forward(self, x):
        features = self.conv(x)
        spread = (features.var(dim=-1) + 1e-8).sqrt()
        return self.head(spread).squeeze(1)


model = Volatility()
optimizer = torch.optim.Adam(model.parameters(), lr=0.003)
mse = nn.MSELoss()
print("signals:", tuple(signals.shape))


def test_loss():
    with torch.no_grad():
        return mse(model(signals[1600:]), target[1600:]).item()


print(f"first loss: {test_loss():.4f}")
for epoch in range(5):
    for i in range(50):
        xb, yb = signals[i * 32 : (i + 1) * 32], target[i * 32 : (i + 1) * 32]
        loss = mse(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if epoch == 0 and i in (25, 26):
            print(f"batch {i}: loss {loss.item():.4f}")
print(f"final loss: {test_loss():.4f}")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
