"""Ranks that stand still together: the one that is not in a collective is named, with its own reason and stack."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.detectors.hang_classes import classify
from holdfast.detectors.hang_verdict import Verdict
from holdfast.stack_snapshots import (
    End,
    ProcessSnapshot,
    RecordedStacks,
    SourceFrame,
    ThreadSnapshot,
    TreeSnapshot,
    Wait,
    WaitKind,
)

LOCK = Wait(WaitKind.LOCK, False)
BACKWARD = SourceFrame("/venv/site-packages/torch/autograd/graph.py", 829, "_engine_run_backward")
BARRIER = SourceFrame("/venv/site-packages/torch/distributed/distributed_c10d.py", 5356, "barrier")
SOCKET = Wait(WaitKind.READ, False, (End(7, "socket", "10.0.0.9:443"),))


def rank(number: int, line: int, *inner: SourceFrame, wait: Wait | None = LOCK, state: str = "S") -> ProcessSnapshot:
    pid = 10 + number
    frames = (*inner, SourceFrame("train.py", line, "main", "code"))
    main = ThreadSnapshot(pid, "python", state, 0.0, frames, wait=wait)
    return ProcessSnapshot(pid, 1, "python", "python train.py", state, 0.0, pid, (main,), rank=number)


def verdict(*ranks: ProcessSnapshot) -> Verdict | None:
    agent = ProcessSnapshot(1, 0, "pt_elastic", "torchrun", "S", 0.0, 1, ())
    looks = [TreeSnapshot(at, 0.01, (agent, *ranks)) for at in (100.0, 103.0)]
    steps = {one.pid: 40 for one in ranks}
    first, second = (RecordedStacks(look, 50.0, 10.0, 90.0, "train", steps) for look in looks)
    return classify(first, second, {})


TRAINS = [rank(number, 39, BACKWARD) for number in range(4)]


@pytest.mark.parametrize("culprit", [0, 1, 3])
def test_a_stopped_rank_is_named_soon_whichever_it_is(culprit: int) -> None:
    still = rank(culprit, 31, wait=None, state="T")
    found = verdict(*(still if one.rank == culprit else one for one in TRAINS))

    assert found is not None
    assert (found.cause, found.soon) == ("collective-timeout", True)
    assert found.headline == f"Rank {culprit} is stopped, and the other ranks wait for it"


@pytest.mark.parametrize(
    ("wait", "cause"),
    [
        pytest.param(Wait(WaitKind.SLEEP, True), "collective-timeout", id="sleeps"),
        pytest.param(SOCKET, "io-stall", id="waits for an answer"),
    ],
)
def test_the_rank_that_did_not_come_is_named_with_its_stack(wait: Wait, cause: str) -> None:
    found = verdict(TRAINS[0], rank(1, 26, wait=wait), *TRAINS[2:])

    assert found is not None
    assert (found.cause, found.among_ranks) == (cause, True)
    assert found.headline.startswith("Rank 1 does not come: ")
    assert "rank 1 (process 11)" in found.evidence[0]
    assert "train.py:26" in found.evidence[0]


def test_a_rank_past_its_last_batch_has_fewer_than_the_others() -> None:
    found = verdict(TRAINS[0], rank(1, 44, BARRIER))

    assert found is not None
    assert (found.cause, found.among_ranks) == ("unequal-batches", True)


def test_a_rank_that_computes_is_waited_for() -> None:
    busy = rank(1, 26, wait=None, state="R")
    threads = tuple(
        replace(thread, missing="it runs, and a thread that runs Python is not asked", frames=())
        for thread in busy.threads
    )

    assert verdict(TRAINS[0], replace(busy, threads=threads)) is None
