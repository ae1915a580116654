import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    model = DistributedDataParallel(nn.Linear(12, 12))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        for _ in range(80):
            x = torch.randn(16, 12)
            loss = (model(x) - x).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            time.sleep(0.01)
        if dist.get_rank() == 0:
            ends, seen = time.monotonic() + 30, 0
            with torch.no_grad():
                while time.monotonic() < ends:
                    seen += model.module(torch.randn(256, 12)).square().mean().item()
        dist.barrier()
        print(f"epoch {epoch}: both ranks go on", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
