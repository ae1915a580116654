"""A PyTorch loop with the one call. `gpu_torch.py CAP_GIB ROWS RESULT.npy`; no cap with 0."""

import json
import sys
import time

import numpy as np
import torch

import holdfast

cap, rows = float(sys.argv[1]), int(sys.argv[2])
if cap:
    torch.cuda.set_per_process_memory_fraction(cap * 2**30 / torch.cuda.get_device_properties(0).total_memory)
torch.manual_seed(1)
nn = torch.nn
blocks = [layer for _ in range(8) for layer in (nn.Conv2d(32, 32, 3, padding=1), nn.ReLU())]
head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)]
model = nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), *blocks, *head).double().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
x = torch.randn(rows, 3, 64, 64, generator=torch.Generator().manual_seed(2)).double().cuda()
y = torch.randint(0, 10, (rows,), generator=torch.Generator().manual_seed(3)).cuda()
began = time.perf_counter()
for _ in range(5):
    optimizer.zero_grad()
    holdfast.backward(model, lambda x, y: nn.functional.cross_entropy(model(x), y), x, y)
    optimizer.step()
torch.cuda.synchronize()
seconds = time.perf_counter() - began
np.save(sys.argv[3], np.concatenate([p.detach().cpu().numpy().ravel() for p in model.parameters()]))
print(json.dumps({"peak_gib": torch.cuda.max_memory_reserved() / 2**30, "seconds": seconds}))
