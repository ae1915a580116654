import datetime
import os
import socket
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn

STUCK_RANK = 1
STUCK_AT = 8


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def batch(rank, step):
    if rank == STUCK_RANK and step == STUCK_AT:
        time.sleep(40)  # the storage does not answer
    generator = torch.Generator().manual_seed(1000 * rank + step)
    return torch.randn(32, 16, generator=generator)


def train(rank, world, port):
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=rank, world_size=world, timeout=datetime.timedelta(seconds=8))
    print(f"rank {rank} trains")
    model = nn.Linear(16, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for step in range(30):
        x = batch(rank, step)
        loss = nn.functional.mse_loss(model(x), x[:, :1])
        optimizer.zero_grad()
        loss.backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad)
            parameter.grad /= world
        optimizer.step()
    print(f"rank {rank}: loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(2, free_port()), nprocs=2)
