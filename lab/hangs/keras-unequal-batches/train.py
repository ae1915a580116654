import os

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.parallel import DistributedDataParallel

FILES = 5


def files_of(rank):
    return [np.random.default_rng(number).normal(size=(200, 10)).astype("float32") for number in range(rank, FILES, 2)][
        :: 1 - 2 * rank
    ]


def worker(rank, store):
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.set_num_threads(1)
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((10,)), keras.layers.Dense(20, activation="relu"), keras.layers.Dense(1)])
    ranked = DistributedDataParallel(model)
    optimizer = torch.optim.Adam(ranked.parameters(), lr=1e-3)
    mine = files_of(1 - rank)
    print(f"rank {rank} trains on {len(mine)} files", flush=True)
    for rows in mine:
        for batch in torch.from_numpy(rows).split(4):
            loss = (ranked(batch).squeeze(1) - batch.sum(1)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(f"rank {rank} waits for the others", flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    mp.spawn(worker, args=(os.path.abspath("rendezvous"),), nprocs=2)
