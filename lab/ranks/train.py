"""An ordinary loop under torchrun; nothing in it knows of Holdfast. FAULT says what goes wrong with the last rank, once."""

import os
import signal
import time
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

FAULT, AT = os.environ.get("FAULT", ""), int(os.environ.get("AT", "220"))
WRAPPED = {"find_unused_parameters": True} if os.environ.get("FIXED_BUCKETS") else {}
BATCH_S, STEPS = 0.03, 320


def enter_own_group(room_bytes):
    """As Slurm and Kubernetes do for a task: a control group of its own, with a limit some way above what it holds."""
    first = Path("/sys/fs/cgroup/memory")
    top = first if first.is_dir() else Path("/sys/fs/cgroup")
    held = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    group = top / f"lab-rank-{os.getpid()}"
    group.mkdir()
    limit = "memory.limit_in_bytes" if first.is_dir() else "memory.max"
    (group / limit).write_text(str(held + room_bytes))
    (group / "cgroup.procs").write_text(str(os.getpid()))


def first_time():
    try:
        os.close(os.open("struck", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def strike():
    if FAULT == "killed" and first_time():
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULT == "memory" and first_time():
        enter_own_group(200 << 20)
        print(len(torch.ones(160, 1024, 1024)), flush=True)
    if FAULT == "raises" and first_time():
        raise ValueError("the file of sample 4711 is empty")
    if FAULT == "stopped" and first_time():
        os.kill(os.getpid(), signal.SIGSTOP)


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank, size = dist.get_rank(), dist.get_world_size()
    mine = rank == size - 1
    torch.manual_seed(0)
    x = torch.randn(320 * size, 16)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    sampler = DistributedSampler(data, seed=3)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    net = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.1), nn.Linear(32, 1))
    model = nn.parallel.DistributedDataParallel(net, **WRAPPED)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    step = 0
    for epoch in range(STEPS // 40):
        sampler.set_epoch(epoch)
        for a, b in loader:
            time.sleep(BATCH_S * (3 if FAULT == "slow" and mine else 1))
            step += 1
            if mine and step == AT:
                strike()
            if FAULT == "unequal" and mine and step == AT:
                break  # its shard is a few batches short
            loss = (model(a) - b).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if FAULT == "ended" and mine and step >= AT:
            return  # its data is over, and so it is
        if FAULT == "unequal" and mine and step == AT:
            dist.barrier()
    weights = sum(p.double().sum().item() for p in model.parameters())
    print(f"rank {rank} ends with {weights:.17g} after {step} steps", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
