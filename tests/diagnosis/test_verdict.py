"""One root cause: what explains comes before what is explained."""

from __future__ import annotations

import pytest

from holdfast.detectors import find_endings
from holdfast.diagnosis.remedies import remedies_for
from holdfast.diagnosis.verdict import diagnose, over_attempts
from holdfast.vocabulary import Diagnosis, Event, Evidence, Finding, Window
from tests.story import START, kernel, story

TRACEBACK = b'Traceback (most recent call last):\n  File "/home/ada/train.py", line 3, in <module>\n    x\n%s\n'


def verdict(window: Window) -> Diagnosis:
    return diagnose(window, find_endings(window))


def raised(words: str, code: int = 1, **more: object) -> Diagnosis:
    return verdict(story(code, None, {"stderr": TRACEBACK % words.encode()}, **more))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ("KeyError: 'x'", "unhandled-exception"),
        ("KeyboardInterrupt", "interrupted"),
        ("MemoryError", "host-memory-exhausted"),
        ("numpy.exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array", "host-memory-exhausted"),
        ("RuntimeError: [enforce fail at alloc_cpu.cpp:126] DefaultCPUAllocator: can't allocate memory", "host-memory-exhausted"),
        ("OSError: [Errno 28] No space left on device: 'model.keras'", "disk-full"),
        ("OSError: [Errno 122] Disk quota exceeded", "disk-full"),
        ("OSError: [Errno 24] Too many open files: 'img.png'", "too-many-open-files"),
        ("RuntimeError: can't start new thread", "too-many-processes"),
        ("RuntimeError: unable to write to file </torch_81_3>: No space left on device (28)", "shared-memory-exhausted"),
        ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB", "gpu-memory-exhausted"),
        ("RuntimeError: CUDA error: out of memory", "gpu-memory-exhausted"),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'a/b.csv'", "missing-file"),
    ],
)  # fmt: skip
def test_exceptions_have_their_cause(words: str, cause: str) -> None:
    answer = raised(words)
    assert answer.cause is not None and answer.cause.id == cause
    assert any("train.py:3" in item.text for item in answer.cause.evidence)


def test_a_run_that_came_through_names_what_an_earlier_attempt_died_of() -> None:
    line = "Memory cgroup out of memory: Killed process 100 (python) total-vm:9kB, anon-rss:8kB"
    died = verdict(story(137, 9, events=[kernel(line, START + 20)]))
    answer = over_attempts([died, verdict(story(0, None))], restarts=1)
    assert answer.outcome == "recovered" and answer.cause is not None and answer.cause.id == "container-memory-limit"


def test_what_says_more_comes_before_what_says_less() -> None:
    loading = Finding("dataset-in-memory", 0.82, ())
    answer = diagnose(story(137, 9), [loading, Finding("container-memory-limit", 0.97, ())])
    assert answer.cause is not None and answer.cause.id == "dataset-in-memory"


def test_of_two_nearly_as_likely_the_earlier_is_the_cause() -> None:
    late = Finding("port-in-use", 0.9, (Evidence("late", "stderr", START + 60),))
    early = Finding("network-lost", 0.88, (Evidence("early", "telemetry", START + 10),))
    answer = diagnose(story(1), [late, early])
    assert answer.cause is not None and answer.cause.id == "network-lost"


def test_a_kernel_kill_explains_the_trainers_exception() -> None:
    line = "Memory cgroup out of memory: Killed process 101 (python) total-vm:9kB, anon-rss:8kB"
    worker = Event("process.appeared", START + 1, {"pid": 101, "name": "python"})
    answer = raised(
        "RuntimeError: DataLoader worker (pid 101) is killed by signal: Killed.", events=[kernel(line), worker]
    )
    assert answer.cause is not None and answer.cause.id == "container-memory-limit"
    assert {cause.id for cause in answer.also} == {"worker-died", "unhandled-exception"}


def test_a_full_disk_explains_a_write_that_failed_without_saying_why() -> None:
    full = Event("disk.full", START + 60, {"mountpoint": "/ckpt", "free_bytes": 4096, "total_bytes": 24 << 20})
    words = "RuntimeError: [enforce fail at inline_container.cc:664] . unexpected pos 576 vs 470"
    with_disk, without = raised(words, events=[full]), raised(words)
    assert with_disk.cause is not None and with_disk.cause.id == "disk-full"
    assert without.cause is not None and without.cause.id == "unhandled-exception"


def test_full_shared_memory_explains_a_bus_error() -> None:
    window = story(135, 7, shm__total_bytes=[64e6] * 61, shm__free_bytes=[0.0] * 61)
    answer = verdict(window)
    assert answer.cause is not None and answer.cause.id == "shared-memory-exhausted"


def test_a_healthy_run_has_no_cause_whatever_it_printed() -> None:
    answer = verdict(story(0, None, {"stderr": TRACEBACK % b"ValueError: handled"}))
    assert (answer.outcome, answer.cause, answer.also) == ("completed", None, ())


def test_an_exit_code_alone_cannot_be_told() -> None:
    answer = verdict(story(3, None, {"stdout": b"validation below threshold\n"}))
    assert (answer.outcome, answer.cause) == ("failed", None)


def test_a_stop_is_a_stop_and_a_record_without_ending_is_unknown() -> None:
    assert verdict(story(143, 15)).outcome == "stopped"
    assert verdict(story(None)).outcome == "unknown"
    alive = Event("aftermath", START + 5, {"script_alive": True, "boot_id": "then"})
    assert verdict(story(None, events=[alive])).outcome == "running"


@pytest.mark.parametrize(("silent_s", "said"), [(120.0, "Nothing of it has moved for 120 s"), (20.0, "still going.")])
def test_why_of_a_command_that_only_waits_says_for_how_long(silent_s: float, said: str) -> None:
    alive = Event("aftermath", START + 5, {"script_alive": True, "boot_id": "then"})
    told = story(None, events=[alive], job__silent_s=[silent_s])
    assert said in verdict(told).summary


def test_remedies_fit_the_framework_that_was_seen() -> None:
    finding = Finding("gpu-memory-exhausted", 0.9, ())
    titles = [remedy.how for remedy in remedies_for(finding, "torch")]
    assert any("backward" in how for how in titles) and not any("keras" in how for how in titles)


def test_a_pipe_to_a_worker_that_is_gone_is_not_the_network_in_a_recorded_run_either() -> None:
    words = (
        b'Traceback (most recent call last):\n  File "/a/train.py", line 38, in main\n    for x, y in loader:\n'
        b'  File "/usr/lib/python3.11/multiprocessing/connection.py", line 647, in SocketClient\n    s.connect(address)\n'
        b"ConnectionRefusedError: [Errno 111] Connection refused\n"
    )
    window = story(1, None, output={"stderr": words})
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "worker-died"
