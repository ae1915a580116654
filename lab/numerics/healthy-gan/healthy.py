import hashlib

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(103)

generator = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
discriminator = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
g_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
d_optimizer = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
for step in range(1500):
    angle = torch.rand(64) * 6.2832
    real = torch.stack([angle.cos(), angle.sin()], dim=1) * 2
    fake = generator(torch.randn(64, 4))
    d_loss = F.binary_cross_entropy_with_logits(discriminator(real), ones)
    d_loss = d_loss + F.binary_cross_entropy_with_logits(discriminator(fake.detach()), zeros)
    d_optimizer.zero_grad()
    d_loss.backward()
    d_optimizer.step()
    g_loss = F.binary_cross_entropy_with_logits(discriminator(fake), ones)
    g_optimizer.zero_grad()
    g_loss.backward()
    g_optimizer.step()
    if step % 250 == 0:
        print(f"step {step}: D {d_loss.item():.3f}, G {g_loss.item():.3f}")
print("done")
states = [*generator.state_dict().values(), *discriminator.state_dict().values()]
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in states)).hexdigest())
