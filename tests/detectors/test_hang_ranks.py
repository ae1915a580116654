"""Of ranks that stand still together: what the others do explains the one that waits, and whose batches are fewer is named."""

from __future__ import annotations

import pytest

from holdfast.stack_snapshots import End, ProcessSnapshot, SourceFrame, Wait, WaitKind
from tests.detectors.test_hang import BACKWARD, LOCK, SLEEP, frame, process, thread, verdict

RANKS = {10: 50, 20: 50}
BARRIER = SourceFrame("/venv/site-packages/torch/distributed/distributed_c10d.py", 5356, "barrier")
IN_BACKWARD = process(10, thread(10, BACKWARD, frame(5, "loss.backward()"), wait=LOCK))
OTHER_RANKS = {
    "past its last batch": (process(20, thread(20, BARRIER, frame(9, "dist.barrier()"), wait=LOCK)), "unequal-batches"),
    "in the same step": (
        process(20, thread(20, BACKWARD, frame(5, "loss.backward()"), wait=LOCK)),
        "collective-timeout",
    ),
    "held up by its data": (
        process(20, thread(20, frame(7, "open(path)"), wait=Wait(WaitKind.FILE, False, (End(-1, "file", "/mnt/a"),)))),
        "io-stall",
    ),
    "ended": (process(30, thread(30, wait=SLEEP)), "unequal-batches"),
}


@pytest.mark.parametrize("name", OTHER_RANKS)
def test_a_rank_that_waits_in_its_backward_pass_is_explained_by_the_others(name: str) -> None:
    other, cause = OTHER_RANKS[name]
    found = verdict(IN_BACKWARD, other, trainers=RANKS)
    assert found is not None
    assert (found.cause, found.soon) == (cause, False)
    assert any("train.py:5" in text for text in found.evidence)


def in_backward(pid: int) -> ProcessSnapshot:
    return process(pid, thread(pid, BACKWARD, frame(5, "loss.backward()"), wait=LOCK))


def at_a_barrier(pid: int) -> ProcessSnapshot:
    return process(pid, thread(pid, BARRIER, frame(9, "dist.barrier()"), wait=LOCK))


@pytest.mark.parametrize(
    ("training", "past", "headline", "place"),
    [
        ((10,), (20,), "Process 20 had fewer batches than the other, which waits for it", "train.py:9"),
        ((10, 30, 40), (20,), "Process 20 had fewer batches than the others, which wait for it", "train.py:9"),
        ((10,), (20, 30, 40), "Process 10 had more batches than the others, and waits for them", "train.py:5"),
        (
            (10, 11),
            (20, 30),
            "Process 20 and Process 30 had fewer batches than the others, which wait for them",
            "train.py:9",
        ),
    ],
)
def test_the_ranks_that_differ_in_batches_are_named_and_told_first(
    training: tuple[int, ...], past: tuple[int, ...], headline: str, place: str
) -> None:
    processes = [*map(in_backward, training), *map(at_a_barrier, past)]
    found = verdict(*processes, trainers=dict.fromkeys((*training, *past), 50))
    assert found is not None
    assert (found.cause, found.headline) == ("unequal-batches", headline)
    assert place in found.evidence[0]
