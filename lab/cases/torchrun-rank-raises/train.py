import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

SCALES = {"shard-0": 1.0}


def scale_of(shard):
    return SCALES[shard]


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for turn in range(30):
        scale = scale_of(f"shard-{rank}") if turn > 15 else 1.0
        loss = (model(torch.randn(16, 8)) * scale).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and turn % 10 == 0:
            print(f"round {turn}: loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
