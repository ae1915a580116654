"""Of several ranks, which one stopped first and how; the others only complain of its loss."""

from __future__ import annotations

import pytest

from holdfast.detectors import first_rank
from holdfast.diagnosis.verdict import diagnose
from holdfast.fleet import findings
from holdfast.fleet.events import RankEnded, RankJoined, RankLeft
from holdfast.fleet.first_stop import Stop, first_stop
from holdfast.vocabulary import Diagnosis, Event, Sample, Window
from tests.story import START

LOST = "RuntimeError: [/__w/gloo/transport/tcp/pair.cc:537] Read error [127.0.0.1]:49317: Connection reset by peer"
WAITED = "RuntimeError: [/__w/gloo/unbound_buffer.cc:82] Timed out waiting 30000ms for recv operation to complete"
AT = START + 50
TRACEBACK = b"""[rank0]: Traceback (most recent call last):
[rank0]:   File "/home/user/train.py", line 9, in <module>
[rank0]:     loss.backward()
[rank0]: RuntimeError: Connection closed by peer [127.0.0.1]:39285
[rank1]: Traceback (most recent call last):
[rank1]:   File "/home/user/train.py", line 7, in <module>
[rank1]:     scale = SCALES["shard-7"]
[rank1]: KeyError: 'shard-7'
"""


def joined(*ranks: int, restart: int = 0) -> list[Event]:
    size = len(ranks)
    return [RankJoined(100 * restart + 10 + r, r, size, "torchrun", "job", restart, "n1").event(START) for r in ranks]


def killed(rank: int, after_s: float = 0.0, for_memory: int | None = None, number: int = 9) -> list[Event]:
    return [RankEnded(10 + rank, rank, -number, for_memory).event(AT + after_s)]


def raised(rank: int, words: str, after_s: float = 0.0) -> list[Event]:
    told = RankLeft(10 + rank, 40, words, "train.py:7 in main").event(AT + after_s)
    return [told, RankEnded(10 + rank, rank, 1, None).event(AT + after_s + 0.8)]


def finished(rank: int, after_s: float = 0.0) -> list[Event]:
    return [RankLeft(10 + rank, 60).event(AT + after_s), RankEnded(10 + rank, rank, 0, None).event(AT + after_s + 0.1)]


def window(*events: list[Event], code: int = 1, output: bytes = b"") -> Window:
    told = [
        Event("run.start", START, {"command": ["torchrun", "train.py"], "script_pid": 5}),
        Event("machine", START, {"boot_id": "then", "pid_namespace": "initial"}),
        *(Event("process.appeared", START, {"pid": 10 + rank, "name": "python"}) for rank in range(4)),
        *(event for some in events for event in some),
        Event("script.exit", START + 60, {"code": code, "signal": None}),
    ]
    steps = {f"train[{10 + r}].steps_count": [Sample(f"train[{10 + r}].steps_count", 40 + r, AT)] for r in range(4)}
    return Window(told, steps, {"stderr": output} if output else None)


def verdict(of: Window) -> Diagnosis:
    found = first_rank.find(of)
    return diagnose(of, [found] if found is not None else [])


ENDINGS = {
    "killed": (killed(1) + raised(0, LOST, -0.002), 1, Stop.KILLED),
    "killed, and the others aborted for it": (killed(1) + killed(0, -0.01, number=6), 1, Stop.KILLED),
    "killed for memory": (killed(1, for_memory=1) + killed(0, 0.2, number=15), 1, Stop.KILLED_FOR_MEMORY),
    "raised": (raised(1, "KeyError: 'shard-7'") + raised(0, LOST, 0.9), 1, Stop.RAISED),
    "raised, while the engine ended the other": (
        raised(1, "KeyError: 'x'") + killed(0, 1.4, number=15),
        1,
        Stop.RAISED,
    ),
    "crashed": (killed(1, number=11) + raised(0, LOST, 0.1), 1, Stop.CRASHED),
    "ran out of batches": (finished(1) + raised(0, LOST, 0.2), 1, Stop.FINISHED),
    "did not come": (raised(0, WAITED) + killed(1, 2.0, number=15), 1, Stop.MISSING),
}


@pytest.mark.parametrize(("events", "rank", "how"), ENDINGS.values(), ids=ENDINGS.keys())
def test_the_rank_and_how_it_stopped_are_named(events: list[Event], rank: int, how: Stop) -> None:
    found = first_stop(window(joined(0, 1), events))

    assert found is not None
    assert (found.rank, found.how) == (rank, how)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        ("killed", "killed"),
        ("killed for memory", "container-memory-limit"),
        ("ran out of batches", "unequal-batches"),
        ("did not come", "collective-timeout"),
    ],
)
def test_the_verdict_is_about_that_rank(name: str, cause: str) -> None:
    answer = verdict(
        window(joined(0, 1), ENDINGS[name][0], output=b"[rank0]: RuntimeError: Connection reset by peer\n")
    )

    assert answer.cause is not None
    assert answer.cause.id == cause
    assert answer.cause.title.startswith("Rank 1 ")


def test_what_the_first_rank_raised_is_the_cause_and_the_rest_is_an_echo() -> None:
    answer = verdict(window(joined(0, 1), raised(1, "KeyError: 'shard-7'"), raised(0, LOST, 0.9), output=TRACEBACK))

    assert answer.cause is not None
    assert (answer.cause.id, answer.cause.title) == ("unhandled-exception", "Rank 1 raised KeyError: 'shard-7'")
    texts = [item.text for item in answer.cause.evidence]
    assert any("rank 1 (process 11 on n1) stopped first" in text for text in texts)
    assert any(text.startswith("rank 0 followed 900 ms later for the loss of it") for text in texts)
    assert not any("line 9" in text for text in texts)


WITHOUT_LABELS = b"""Traceback (most recent call last):
  File "/home/user/train.py", line 7, in main
    raise ValueError("the file of sample 4711 is empty")
ValueError: the file of sample 4711 is empty
E0000 00:00:1 base_collective_executor.cc:252] StartAbort UNAVAILABLE: Error reported from /job:worker/task:1
Traceback (most recent call last):
  File "/home/user/train.py", line 9, in main
    step(source)
UnavailableError: Graph execution error:
Collective ops is aborted by: Error reported from /job:worker/task:1
"""


@pytest.mark.parametrize("output", [WITHOUT_LABELS, b"step 1\n"])
def test_what_the_first_rank_raised_is_found_among_tracebacks_without_labels(output: bytes) -> None:
    """Or, where nothing of it was printed, told by its words and its place."""
    lost = (
        "UnavailableError: Graph execution error:\nCollective ops is aborted by: Error reported from /job:worker/task:1"
    )
    empty = "ValueError: the file of sample 4711 is empty"
    answer = verdict(window(joined(0, 1), raised(1, empty), raised(0, lost, 8.0), output=output))

    assert answer.cause is not None
    assert (answer.cause.id, answer.cause.title) == ("unhandled-exception", f"Rank 1 raised {empty}")
    assert any("train.py:7" in item.text or "line 7" in item.text for item in answer.cause.evidence)


def test_a_kill_that_the_kernel_names_is_for_memory() -> None:
    line = "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),task_memcg=/rank1,task=python,pid=11,uid=0"
    told = window(joined(0, 1), killed(1), killed(0, 0.2, number=15), [Event("kernel.line", AT, {"text": line})])
    found = first_rank.find(told)

    assert found is not None
    assert (found.cause, found.confidence) == ("container-memory-limit", findings.NAMED)


def test_only_the_latest_start_of_the_job_counts() -> None:
    before = [RankEnded(10, 0, -9, None).event(AT - 20), RankEnded(11, 1, -15, None).event(AT - 19)]
    after = [RankEnded(110, 0, -15, None).event(AT + 1), RankEnded(111, 1, -9, None).event(AT)]
    found = first_stop(window(joined(0, 1), before, joined(0, 1, restart=1), after))

    assert found is not None
    assert found.rank == 1


def test_a_job_that_the_engine_started_again_says_what_it_was_rescued_from() -> None:
    before = [RankEnded(10, 0, -15, None).event(AT - 19), RankEnded(11, 1, -9, None).event(AT - 20)]
    after = [RankEnded(110 + rank, rank, 0, None).event(AT) for rank in (0, 1)]
    restored = [Event("checkpoint.restored", AT - 10, {"pid": 110 + rank, "step": 30}) for rank in (0, 1)]
    answer = verdict(window(joined(0, 1), before, joined(0, 1, restart=1), restored, after, code=0))

    assert answer.outcome == "recovered"
    assert answer.cause is not None
    assert answer.cause.title.startswith("Rank 1 was killed")
    assert any(item.text == "they went on from step 30" for item in answer.cause.evidence)


def test_a_job_that_was_started_once_and_finished_was_rescued_from_nothing() -> None:
    answer = verdict(window(joined(0, 1), finished(0), finished(1, 2.0), code=0))

    assert (answer.outcome, answer.cause) == ("completed", None)


@pytest.mark.parametrize(
    ("events", "code"),
    [
        pytest.param(finished(0) + finished(1, 3.0), 0, id="all have finished, one earlier"),
        pytest.param(raised(1, "KeyError: 'x'") + finished(0, 1.0), 0, id="the engine calls it a success"),
        pytest.param(killed(0, number=15) + killed(1, 0.1, number=15), 1, id="the engine ended all"),
        pytest.param(
            [*raised(0, LOST), RankEnded(11, 1, None, None).event(AT)], 1, id="one was over before it was looked at"
        ),
        pytest.param(raised(0, LOST) + raised(1, LOST, 0.1), 1, id="all lost one another"),
        pytest.param(raised(0, LOST) + killed(1, 0.1, number=15), 1, id="a connection was lost, and nobody says whose"),
    ],
)
def test_where_nobody_was_first_nobody_is_named(events: list[Event], code: int) -> None:
    assert first_stop(window(joined(0, 1), events, code=code)) is None


def test_a_job_that_was_asked_to_stop_has_no_first_rank() -> None:
    asked = [Event("signal.received", AT - 1, {"signal": 15})]

    assert first_stop(window(joined(0, 1), asked, killed(1), killed(0, 1.0, number=15))) is None


def test_agents_that_slurm_started_are_no_ranks_of_the_training() -> None:
    agents = [RankJoined(90 + r, r, 2, "slurm", "77.0", 0, f"n{r}").event(START - 5) for r in (0, 1)]
    found = first_stop(window(agents, joined(0, 1, 2, 3), killed(3), killed(0, 0.5, number=15)))

    assert found is not None
    assert (found.rank, len(found.others)) == (3, 3)


@pytest.mark.parametrize(
    "ended",
    [
        Event("decision", AT - 0.1, {"decision": "end", "key": "hang", "text": "it has stood still for 64 s"}),
        Event("guard.stopped", AT - 0.1, {"what": "memory", "whole_job": True}),
    ],
)
def test_a_rank_that_holdfast_ended_was_not_killed_by_somebody(ended: Event) -> None:
    assert first_stop(window(joined(0, 1), killed(0), killed(1, 0.01), [ended])) is None


RAY = b"""(RayTrainWorker pid=11) Error in training function:
(RayTrainWorker pid=11) Traceback (most recent call last):
(RayTrainWorker pid=11)   File "/home/user/train.py", line 7, in loop
(RayTrainWorker pid=11)     scale = SCALES["shard-7"]
(RayTrainWorker pid=11) KeyError: 'shard-7'
(RayTrainWorker pid=10) Traceback (most recent call last):
(RayTrainWorker pid=10)   File "/home/user/train.py", line 9, in loop
(RayTrainWorker pid=10)     loss.backward()
(RayTrainWorker pid=10) RuntimeError: Connection closed by peer [127.0.0.1]:39285
Traceback (most recent call last):
  File "/home/user/train.py", line 30, in <module>
    trainer.fit()
ray.train.WorkerGroupError: Training failed due to worker errors:
[Rank 1 Error Snippet]:
    scale = SCALES["shard-7"]
KeyError: 'shard-7'
"""


def of_ray(*ended: list[Event], output: bytes = b"") -> Window:
    ranks = [[RankJoined(10 + r, r, 2, "ray", "n1:4711", 0, "n1").event(START)] for r in (0, 1)]
    return window(*ranks, *ended, output=output)


def test_what_a_worker_of_ray_raised_is_told_with_its_rank() -> None:
    """Ray catches it, prints it, and ends all workers with the exit code 1."""
    ended = [RankEnded(10 + r, r, 1, None).event(AT + r) for r in (0, 1)]
    found = diagnose(of_ray(ended, output=RAY), [])

    assert found.cause is not None
    assert found.cause.title == "Rank 1 raised KeyError: 'shard-7'"


def test_a_worker_of_ray_that_was_killed_is_first() -> None:
    other = [RankEnded(10, 0, 1, None).event(AT + 1)]
    first = first_stop(of_ray(killed(1), other))

    assert first is not None
    assert (first.rank, first.how) == (1, Stop.KILLED)
