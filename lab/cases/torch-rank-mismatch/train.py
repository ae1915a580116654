import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def words_of(rank):
    """Each rank reads its own part of the corpus."""
    return [f"word{number % (90 + 10 * rank)}" for number in range(2000)]


def train(rank, world, port):
    torch.set_num_threads(1)
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    dist.init_process_group("gloo", rank=rank, world_size=world)
    vocabulary = sorted(set(words_of(rank)))
    print(f"rank {rank} builds a model of {len(vocabulary)} words")
    model = DistributedDataParallel(nn.Sequential(nn.EmbeddingBag(len(vocabulary), 16), nn.Linear(16, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(40):
        tokens = torch.randint(0, len(vocabulary), (16, 8))
        loss = nn.functional.cross_entropy(model(tokens), tokens[:, 0] % 2)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"rank {rank}: loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(train, args=(2, free_port()), nprocs=2)
