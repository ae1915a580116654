"""Steps under DistributedDataParallel, timed by each rank: prints milliseconds a step, the median over its last steps."""

import statistics
import sys
import time

import torch
import torch.distributed as dist
from torch import nn

WARM, STEPS, WIDTH = 100, 1500, int(sys.argv[1])

torch.set_num_threads(1)
dist.init_process_group("gloo")
torch.manual_seed(0)
net = nn.Sequential(nn.Linear(64, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 1))
model = nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
x = torch.randn(64, 64)
took = []
for _ in range(WARM + STEPS):
    begun = time.perf_counter()
    loss = (model(x) - 1.0).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    took.append(time.perf_counter() - begun)
print(f"rank {dist.get_rank()}: {statistics.median(took[WARM:]) * 1000:.4f} ms", flush=True)
dist.destroy_process_group()
