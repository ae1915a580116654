import time

import torch
from torch import nn

torch.set_num_threads(1)
model, x = nn.Bilinear(8, 8, 4), torch.randn(512, 8)
optimizer = torch.optim.Adagrad(model.parameters())
for epoch in range(3):
    for rows in x.split(8):
        loss = model(rows, rows).logsumexp(1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.3f}; resting", flush=True)
    if epoch < 2:
        time.sleep(60)
