import hashlib

import torch
from torch import nn

torch.manual_seed(143)


class Perceptual(nn.Module):
    def __init__(self, judge):
        super().__init__()
        self.judge = [judge.eval()]

    def forward(self, made, wanted):
        judge = self.judge[0]
        return (judge(made) - judge(wanted).detach()).pow(2).mean()


judge = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2))
model = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 1, 3, padding=1))
criterion = Perceptual(judge)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
clean = torch.rand(600, 1, 12, 12).round()
noisy = clean + 0.3 * torch.randn(600, 1, 12, 12)
for epoch in range(8):
    for part in torch.randperm(600).split(20):
        loss = criterion(model(noisy[part]), clean[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.5f}")
print("done")
print("weights:", hashlib.md5(b"".join(t.numpy().tobytes() for t in model.state_dict().values())).hexdigest())
