import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(113)

factors = torch.randn(3000, 3)
data = torch.tanh(factors @ torch.randn(3, 20)) + 0.05 * torch.randn(3000, 20)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(20, 48), nn.ReLU())
        self.mean = nn.Linear(48, 3)
        self.log_variance = nn.Linear(48, 3)
        self.decoder = nn.Sequential(nn.Linear(3, 48), nn.ReLU(), nn.Linear(48, 20))

    def forward(self, x):
        h = self.encoder(x)
        mean, log_variance = self.mean(h), self.log_variance(h)
        z = mean + torch.randn_like(mean) * torch.exp(0.5 * log_variance)
        return self.decoder(z), mean, log_variance


model = VAE()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(10):
    sums = [0.0, 0.0]
    for part in torch.randperm(3000).split(50):
        output, mean, log_variance = model(data[part])
        reconstruction = F.mse_loss(output, data[part], reduction="sum") / 50 * 10
        kl = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum() / 50
        loss = reconstruction + kl
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        sums[0] += reconstruction.item()
        sums[1] += kl.item()
    print(f"epoch {epoch}: reconstruction {sums[0] / 60:.3f}, kl {sums[1] / 60:.3f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
