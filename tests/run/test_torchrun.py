"""Real ranks under torchrun: the one that was killed is named, as one run and as a run for each rank."""

from __future__ import annotations

import importlib.util
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
