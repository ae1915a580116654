import os
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

ROOM_BYTES = 300 << 20


def enter_own_group(rank):
    """As Slurm and Kubernetes do for a task: a control group of its own, with a limit some way above what it holds."""
    first = Path("/sys/fs/cgroup/memory")
    top = first if first.is_dir() else Path("/sys/fs/cgroup")
    held = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    group = top / f"lab-rank-{os.getpid()}-{rank}"
    group.mkdir()
    limit = "memory.limit_in_bytes" if first.is_dir() else "memory.max"
    (group / limit).write_text(str(held + ROOM_BYTES))
    (group / "cgroup.procs").write_text(str(os.getpid()))


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = DistributedDataParallel(nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    if rank == 1:
        enter_own_group(rank)
    for step in range(60):
        x = torch.randn(16, 32)
        if rank == 1 and step == 40:
            answers = torch.ones(160, 1024, 1024)
            print(f"validated against {len(answers)} answers", flush=True)
        loss = (model(x) - x.mean(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if rank == 0 and step % 10 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
