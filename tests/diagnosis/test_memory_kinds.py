"""Memory ran out; what it ran out on is told apart, each with a remedy of its own."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from holdfast.detectors import find_endings
from holdfast.diagnosis.verdict import diagnose
from holdfast.inside.out_of_memory import ran_out_on, wanted
from holdfast.vocabulary import Cause, Event, Evidence, Finding, Window
from tests.story import GIB, START, kernel, story

KILLED = "Memory cgroup out of memory: Killed process 100 (python) total-vm:9kB, anon-rss:8kB"
CUDA = b'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    x\n%s\n'
ON_GPU = CUDA % b"torch.OutOfMemoryError: CUDA out of memory."
KERAS, TORCH = Event("framework", START, {"name": "keras"}), Event("framework", START, {"name": "torch"})


def phase(name: str, after_s: float, step: int = 0) -> Event:
    return Event("train.phase", START + after_s, {"phase": name, "step": step})


def longest(shape: list[int], step: int) -> Event:
    return Event("train.longest", START + step, {"shape": shape, "step": step})


def killed(events: list[Event], while_running: Sequence[Finding] = (), **series: list[float | None]) -> Cause:
    told = [KERAS, kernel(KILLED), *events]
    return cause_of(story(137, 9, None, told, **series), while_running)


def on_the_gpu(events: list[Event], **series: list[float | None]) -> Cause:
    return cause_of(story(1, None, {"stderr": ON_GPU}, [TORCH, *events], **series))


def cause_of(window: Window, while_running: Sequence[Finding] = ()) -> Cause:
    answer = diagnose(window, find_endings(window), while_running)
    assert answer.cause is not None
    return answer.cause


def text_of(cause: Cause) -> str:
    return " ".join(item.text for item in cause.evidence)


def test_a_batch_that_was_too_big_from_the_first_step() -> None:
    cause = killed([phase("compile", 5)])
    assert cause.id == "container-memory-limit" and "no step was ever finished" in text_of(cause)
    assert "gradient_accumulation_steps" in cause.remedies[0].how


@pytest.mark.parametrize(("steps", "words"), [(1.0, "only 1 step was finished"), (2.0, "only 2 steps were finished")])
def test_few_steps_are_counted_in_words_that_fit(steps: float, words: str) -> None:
    assert words in text_of(killed([phase("compile", 5)], train__steps_count=[steps]))


def test_evaluation_that_needs_more_than_training() -> None:
    cause = killed([phase("compile", 5), phase("train", 6), phase("validate", 40, 30)], train__steps_count=[1.0, 30.0])
    assert "while evaluating, after 30 training steps that fitted" in text_of(cause)
    assert "validation_batch_size" in cause.remedies[0].how


def test_after_an_evaluation_that_went_well_it_is_not_evaluation() -> None:
    phases = [phase("train", 6), phase("validate", 20, 15), phase("train", 30, 15)]
    assert "evaluating" not in text_of(killed(phases, train__steps_count=[1.0, 30.0]))


def test_a_sequence_longer_than_all_before() -> None:
    batches = [longest([32, 128], 1), longest([32, 300], 9), longest([32, 900], 31)]
    cause = killed([phase("train", 6), *batches], train__steps_count=[1.0, 30.0])
    assert "32×900: each row 3.0 times as long as the longest before it" in text_of(cause)
    assert "bucket_by_sequence_length" in cause.remedies[0].how


def test_a_long_one_that_went_through_long_ago_is_not_it() -> None:
    batches = [longest([32, 128], 1), longest([32, 900], 4)]
    assert "as long as" not in text_of(killed([phase("train", 6), *batches], train__steps_count=[1.0, 30.0]))


def test_another_process_that_took_the_card_while_this_one_trained() -> None:
    cause = on_the_gpu(
        [phase("train", 6)],
        gpu0__memory_total_bytes=[80 * GIB] * 3,
        gpu0__memory_used_bytes=[20 * GIB, 22 * GIB, 79 * GIB],
        gpu0__job_memory_bytes=[20 * GIB, 22 * GIB, 23 * GIB],
        train__steps_count=[1.0, 200.0, 400.0],
    )
    assert cause.id == "gpu-memory-held-by-others" and "took 56 GiB" in cause.title
    assert "nvidia-smi" in cause.remedies[0].how


def test_where_pids_are_the_hosts_what_pytorch_reserved_is_ours() -> None:
    used = [GIB, 40 * GIB, 79.5 * GIB]
    card = {"gpu0__memory_total_bytes": [80 * GIB] * 3, "gpu0__memory_used_bytes": used, "train__steps_count": [9.0]}
    ours = on_the_gpu([phase("train", 6)], **card, train__reserved_bytes=[78 * GIB])  # type: ignore[arg-type]
    assert ours.id == "gpu-memory-exhausted"
    theirs = on_the_gpu([phase("train", 6)], **card, train__reserved_bytes=[30 * GIB])  # type: ignore[arg-type]
    assert theirs.id == "gpu-memory-held-by-others"


def test_memory_that_is_free_in_pieces_only() -> None:
    cause = on_the_gpu(
        [phase("train", 6)],
        gpu0__memory_total_bytes=[80 * GIB],
        gpu0__memory_used_bytes=[79 * GIB],
        train__reserved_bytes=[77 * GIB],
        train__allocated_bytes=[30 * GIB],
        train__allocated_peak_bytes=[45 * GIB],
        train__steps_count=[9.0],
    )
    assert cause.id == "gpu-memory-fragmented" and "expandable_segments" in cause.remedies[0].how


def test_a_leak_stands_before_all_of_them() -> None:
    leak = Finding("host-memory-leak", 0.85, (Evidence("memory grows 3 MiB a step", "telemetry", START + 50),))
    cause = killed([phase("train", 6)], [leak], train__steps_count=[1.0, 300.0])
    assert cause.id == "host-memory-leak"


def test_a_run_that_finished_says_that_it_was_evaluation_which_did_not_fit() -> None:
    about = {
        "where": "evaluate",
        "rows": 512,
        "k": 4,
        "of": "container",
        "needed_bytes": 900 << 20,
        "left_bytes": 200 << 20,
    }
    told = [
        KERAS,
        Event("rescue.foreseen", START + 30, about),
        Event("rescue.k", START + 30, {"k": 4, "where": "evaluate"}),
    ]
    answer = diagnose(story(0, None, None, told), [])
    assert answer.outcome == "recovered" and answer.cause is not None
    assert "evaluation on 512 rows needs about 900 MiB; its container had 200 MiB left" in text_of(answer.cause)
    assert "validation_batch_size" in answer.cause.remedies[0].how


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        ("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 8 GiB", "gpu-memory-exhausted"),
        (
            "OOM when allocating tensor with shape[4096,4096] and type float on "
            "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc",
            "gpu-memory-exhausted",
        ),
        (
            "OOM when allocating tensor with shape[4096,4096] and type float on "
            "/job:localhost/replica:0/task:0/device:CPU:0 by allocator mklcpu",
            "host-memory-exhausted",
        ),
        (
            "DefaultCPUAllocator: can't allocate memory: you tried to allocate 17179869184 bytes",
            "host-memory-exhausted",
        ),
    ],
)
def test_what_was_caught_says_whose_memory_it_was(message: str, cause: str) -> None:
    error = RuntimeError(message)
    about = {"where": "train", "k": 2, "of": ran_out_on(error), "wanted": wanted(error)}
    told = [KERAS, Event("rescue.caught", START + 30, about), Event("rescue.k", START + 30, {"k": 2, "where": "train"})]
    answer = diagnose(story(0, None, None, told), [])
    assert answer.outcome == "recovered" and answer.cause is not None and answer.cause.id == cause
