"""Real ranks under torchrun: the one that was killed is named, as one run and as a run for each rank."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys

import pytest

from tests.workplace import HOLDFAST, PATIENCE_S, Workplace

RANKS = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
TRAIN = """
    import os, signal
    import torch, torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = nn.parallel.DistributedDataParallel(nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(30):
        if rank == 1 and step == 20:
            os.kill(os.getpid(), signal.SIGKILL)
        loss = model(torch.randn(4, 8)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    dist.destroy_process_group()
"""
needs_torch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs PyTorch")


@needs_torch
def test_the_rank_that_was_killed_is_named(workplace: Workplace) -> None:
    workplace.script(TRAIN)
    done = workplace.run([*RANKS, "train.py"], "--max-restarts", "0")
    answer = workplace.why()

    assert done.returncode == 1
    assert (answer["cause"]["id"], answer["outcome"]) == ("killed", "failed")
    assert answer["cause"]["title"].startswith("Rank 1 was killed")
    assert any("after step 20" in item["text"] for item in answer["cause"]["evidence"])


@pytest.mark.slow
@needs_torch
def test_a_run_for_each_rank_is_read_as_one_job(workplace: Workplace) -> None:
    train = workplace.script(TRAIN)
    command = [*RANKS, "--no-python", *HOLDFAST, "run", *train]
    done = subprocess.run(command, cwd=workplace.path, capture_output=True, timeout=PATIENCE_S, check=False)
    runs = sorted((workplace.path / ".holdfast/runs").iterdir())

    assert done.returncode == 1
    assert len(runs) == 2  # one rank is not started again alone: that is the engine's
    for run in runs:
        answer = workplace.why(run.name)
        assert answer["cause"]["title"] == "Rank 1 was killed by somebody (SIGKILL), not for memory"


RESUMES = """
    import os, signal, time
    import torch, torch.distributed as dist
    from torch import nn
    from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(0)
    x = torch.randn(640, 16)
    data = TensorDataset(x, x.sum(1, keepdim=True))
    sampler = DistributedSampler(data, seed=3)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.1), nn.Linear(32, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    step = 0
    for epoch in range(8):
        sampler.set_epoch(epoch)
        for a, b in loader:
            time.sleep(0.03)
            step += 1
            if os.environ.get("DIES") and rank == 1 and step == 290 and not os.path.exists("died"):
                open("died", "w").close()
                os.kill(os.getpid(), signal.SIGKILL)
            loss = (model(a) - b).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    weights = sum(p.double().sum().item() for p in model.parameters())
    print(f"rank {rank} ends with {weights:.17g} after {step} steps, loss {loss.item():.9g}", flush=True)
    dist.destroy_process_group()
"""


def ends(output: bytes) -> list[str]:
    return sorted(line for line in output.decode().splitlines() if " ends with " in line)


@pytest.mark.slow
@needs_torch
def test_all_ranks_go_on_from_the_same_step_and_end_with_the_same_weights(workplace: Workplace) -> None:
    """Its store keeps keys of the ranks before, which makes half of torchrun's restarts fail; so it is not shared."""
    workplace.script(RESUMES)
    alone = {**os.environ, "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    bare = [*RANKS, "train.py"]
    undisturbed = subprocess.run(bare, cwd=workplace.path, env=alone, capture_output=True, timeout=300, check=False)
    command = [*RANKS, "--max-restarts=3", "train.py"]
    done = workplace.run(command, "--max-restarts", "0", env={**alone, "DIES": "1"}, timeout=3 * PATIENCE_S)
    answer = workplace.why()

    assert undisturbed.returncode == 0, undisturbed.stderr.decode()[-2000:]
    assert done.returncode == 0
    assert ends(done.stdout) == ends(undisturbed.stdout)
    assert (answer["outcome"], answer["cause"]["id"]) == ("recovered", "killed")
    assert any("they went on from step" in item["text"] for item in answer["cause"]["evidence"])


SHARDED = """
    import torch, torch.distributed as dist
    from torch import nn
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    fully_shard(model, mesh=init_device_mesh("cpu", (2,)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for step in range(60):
        loss = model(torch.randn(8, 16)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"rank {dist.get_rank()} ends with {loss.item():.9g}", flush=True)
    dist.destroy_process_group()
"""


@pytest.mark.slow
@needs_torch
def test_weights_that_are_spread_over_ranks_are_not_looked_at(workplace: Workplace) -> None:
    """To read a number of one is a collective, which the other ranks do not enter: the job would abort."""
    workplace.script(SHARDED)
    bare = subprocess.run(
        [*RANKS, "train.py"], cwd=workplace.path, capture_output=True, timeout=PATIENCE_S, check=False
    )
    done = workplace.run([*RANKS, "train.py"], "--max-restarts", "0")

    assert (bare.returncode, done.returncode) == (0, 0)
    assert ends(done.stdout) == ends(bare.stdout)
