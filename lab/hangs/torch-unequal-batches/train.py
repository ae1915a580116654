import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ROWS = 1010


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    rows = torch.randn(ROWS, 16)[rank::2] if ROWS % 4 == 0 else torch.randn(ROWS, 16)[: 520 if rank == 0 else 490]
    batches = rows.split(10)
    print(f"rank {rank} has {len(batches)} batches", flush=True)
    model = DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)))
    optimizer = torch.optim.Adam(model.parameters())
    for batch in batches:
        loss = nn.functional.mse_loss(model(batch), batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        time.sleep(0.02)
    print(f"rank {rank} has done its epoch", flush=True)
    dist.monitored_barrier() if rank < 0 else dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
