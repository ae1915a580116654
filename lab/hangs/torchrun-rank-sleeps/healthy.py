import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

STUCK_AT = 50
READY = Path(__file__)


def next_shard(rank, step):
    """A downloader puts a file there when a shard has come."""
    while rank == 2 and step == STUCK_AT and not READY.exists():
        time.sleep(1.0)
    x = torch.randn(16, 32)
    return x, x.mean(1, keepdim=True)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(100):
        time.sleep(0.03)
        x, y = next_shard(rank, step)
        loss = (model(x) - y).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step + 1 == STUCK_AT:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
