"""A batch that is not finite on one of two ranks: both leave its update out, or none does, and nothing is sent for that."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.workplace import Workplace

if importlib.util.find_spec("torch") is None:
    pytest.skip("needs PyTorch", allow_module_level=True)

TOP = Path(__file__).parents[2]
BAD = 5  # the step
KINDS = ("plain", "bucket views", "batch norm", "closure")


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    store = tmp_path_factory.mktemp("ranks") / "store"
    command = [sys.executable, "-W", "ignore", "-m", "tests.inside.nan_ranks"]
    started = [
        subprocess.Popen([*command, str(rank), str(store)], cwd=TOP, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for rank in (0, 1)
    ]
    ended = [one.communicate(timeout=200) for one in started]
    assert [one.returncode for one in started] == [0, 0], ended[1][1].decode()[-3000:]
    return [json.loads(output.splitlines()[-1]) for output, _ in ended]


@pytest.mark.parametrize("kind", KINDS)
def test_a_healthy_job_is_the_same_to_the_last_bit(ranks: list[dict[str, Any]], kind: str) -> None:
    found = [rank[f"{kind}, healthy"] for rank in ranks]
    assert [(one["as expected"], one["same on both"]) for one in found] == [(True, True)] * 2
    assert [(one["went on"], one["origins"], one["failed"]) for one in found] == [([], [], [])] * 2


@pytest.mark.parametrize("culprit", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_both_ranks_leave_the_update_out_and_nothing_else(ranks: list[dict[str, Any]], kind: str, culprit: int) -> None:
    """As if the script had left it out on both by itself: weights and slots to the last bit, buffers finite."""
    found = [rank[f"{kind}, rank {culprit}"] for rank in ranks]
    assert [(one["finite"], one["same on both"], one["as expected"]) for one in found] == [(True, True, True)] * 2
    assert [one["went on"] for one in found] == [[[BAD, "batch-skipped"]]] * 2
    assert [one["said"] for one in found] == [["left out on all 2 ranks: its numbers were not finite"]] * 2
    assert [one["failed"] for one in found] == [[], []]


@pytest.mark.parametrize("culprit", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_the_rank_whose_batch_it_was_tells_its_rows(ranks: list[dict[str, Any]], kind: str, culprit: int) -> None:
    own, other = (rank[f"{kind}, rank {culprit}"] for rank in (ranks[culprit], ranks[1 - culprit]))
    assert (own["origins"], own["rows"]) == ([[BAD, "loss", "input"]], [[2]])
    assert (other["origins"], other["rows"]) == ([[BAD, "gradient", "unknown"]], [])


def test_a_step_of_the_short_cut_is_looked_at_on_both_as_well(ranks: list[dict[str, Any]]) -> None:
    found = [rank["late"] for rank in ranks]
    assert [[step for step, _ in one["went on"]] for one in found] == [[650, 680]] * 2
    assert [(one["finite"], one["same on both"]) for one in found] == [(True, True)] * 2


@pytest.mark.parametrize("kind", ["no sync", "own hook", "unwrapped"])
def test_gradients_that_are_not_surely_everyones_are_left_to_the_script(ranks: list[dict[str, Any]], kind: str) -> None:
    assert [rank[kind]["went on"] for rank in ranks] == [[], []]
    assert [BAD, "loss", "input"] in ranks[1][kind]["origins"]
    assert ranks[1][kind]["finite"] is False


def test_both_end_at_the_same_step_where_it_does_not_help(ranks: list[dict[str, Any]]) -> None:
    assert [rank["every batch"] for rank in ranks] == [{"error": "NumbersGoneBad", "times": 5, "at": [8]}] * 2


TRAIN = """
    import math
    import torch, torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    torch.manual_seed(0)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(rank)
    for step in range(30):
        x = torch.randn(4, 8)
        if rank == 1 and step == 20:
            x[3, 2] = math.nan
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
    total = sum(float(p.detach().double().sum()) for p in model.parameters())
    print(f"rank {rank} {total!r}", flush=True)
    dist.destroy_process_group()
"""


@pytest.mark.slow
def test_under_torchrun_the_job_goes_on_and_why_names_the_rows(workplace: Workplace) -> None:
    workplace.script(TRAIN)
    ranks = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = workplace.run([*ranks, "train.py"])
    totals = [line.split()[-1] for line in done.stdout.decode().splitlines() if line.startswith("rank ")]

    assert done.returncode == 0
    assert len(totals) == 2 and len(set(totals)) == 1 and totals[0] != "nan"
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("recovered", "bad-input-values")
    evidence = [item["text"] for item in answer["cause"]["evidence"]]
    assert any("row 3 of the batch" in text for text in evidence)
    assert any("left out on all 2 ranks" in text for text in evidence)


def test_a_rank_that_is_alone_leaves_out_the_row_as_without_torchrun(workplace: Workplace) -> None:
    workplace.script(TRAIN.replace("rank == 1", "rank == 0"))
    alone = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=1"]
    done = workplace.run([*alone, "train.py"])

    assert done.returncode == 0
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("recovered", "bad-input-values")
    evidence = [item["text"] for item in answer["cause"]["evidence"]]
    assert any("row 3 of the batch of step 21 left out" in text for text in evidence)
    assert not any("ranks" in text for text in evidence)
