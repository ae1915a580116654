"""What the record saw settles what the text only suggests."""

from __future__ import annotations

from dataclasses import replace

from holdfast.detectors import find_endings
from holdfast.diagnosis.verdict import diagnose, over_attempts
from holdfast.vocabulary import Diagnosis, Event, Evidence, Finding, Window
from tests.story import GIB, START, kernel, story

SHELL = {
    "stderr": b"launch.sh: line 2: 18336 Killed                  python train.py --lr 0.1\n",
    "stdout": b"step 60\nexit code 137\n",
}
HELLO = Event("inside.hello", START + 2, {"pid": 101})
LOGGED = b"""\
ERROR:root:run failed
Traceback (most recent call last):
  File "/home/me/train.py", line 13, in <module>
    sys.exit(main())
  File "/home/me/train.py", line 4, in main
    rows = np.load("rows.npy")
FileNotFoundError: [Errno 2] No such file or directory: 'rows.npy'
"""


def verdict(window: Window) -> Diagnosis:
    return diagnose(window, find_endings(window))


def test_killed_by_somebody_below_a_shell_is_not_put_on_memory() -> None:
    quiet: list[float | None] = [3.0] * 60
    room: list[float | None] = [20 * GIB] * 60
    window = story(
        137, None, SHELL, [HELLO], host__oom_kill_count=quiet, host__memory_available_bytes=room,
        host__memory_total_bytes=room,
    )  # fmt: skip
    answer = verdict(window)
    assert answer.cause is not None and answer.cause.id == "killed" and answer.cause.confidence >= 0.8


def test_killed_for_memory_below_a_shell_still_is() -> None:
    line = "Memory cgroup out of memory: Killed process 101 (python) total-vm:9kB, anon-rss:8kB"
    child = Event("process.appeared", START + 1, {"pid": 101, "name": "python"})
    window = story(137, None, SHELL, [HELLO, child, kernel(line)], host__oom_kill_count=[3.0] * 59 + [4.0])
    answer = verdict(window)
    assert answer.cause is not None and answer.cause.id == "container-memory-limit"


def test_a_137_from_elsewhere_is_no_certain_kill_here() -> None:
    """`srun` and `docker run` pass it on, and the kernel that knows is another one."""
    answer = verdict(story(137, None, {"stdout": b"srun: task 0: exit code 137\n"}, host__oom_kill_count=[3.0] * 60))
    assert answer.cause is None or answer.cause.confidence < 0.8


def test_one_kill_told_twice_is_not_twice_as_likely() -> None:
    answer = verdict(story(137, None, SHELL))
    guess = [cause for cause in (answer.cause, *answer.also) if cause is not None and "memory" in cause.id]
    assert all(cause.confidence < 0.6 for cause in guess)


def test_an_exception_logged_at_the_very_end_explains_an_exit_code_of_the_scripts_own() -> None:
    answer = verdict(story(3, None, {"stderr": LOGGED, "stdout": b"summary: crashed\n"}))
    assert answer.cause is not None and answer.cause.id == "missing-file" and answer.cause.confidence < 0.8


def test_an_exception_that_was_survived_does_not() -> None:
    went_on = LOGGED + b"".join(b"epoch %d done\n" % i for i in range(8))
    assert verdict(story(3, None, {"stderr": went_on})).cause is None


def test_a_leak_seen_in_an_earlier_attempt_explains_the_kill_of_the_last() -> None:
    line = "Memory cgroup out of memory: Killed process 100 (python) total-vm:9kB, anon-rss:8kB"
    killed = story(137, 9, events=[kernel(line)])
    leak = Finding("host-memory-leak", 0.85, (Evidence("memory grows 4 MiB a step", "telemetry"),))
    first = diagnose(killed, [*find_endings(killed), leak])
    answer = over_attempts([first, verdict(killed)], restarts=1)
    assert answer.cause is not None and answer.cause.id == "host-memory-leak"
    assert any("kernel log" in item.text for item in answer.cause.evidence)
    other = replace(verdict(killed), cause=verdict(story(1, None, {"stderr": LOGGED})).cause)
    answer = over_attempts([first, other], restarts=1)
    assert answer.cause is not None and answer.cause.id == "missing-file", "it explains no other end"


def test_a_warning_signal_that_was_let_through_is_named() -> None:
    warned = Event("preemption", START + 58, {"signal": "SIGUSR1"})
    answer = verdict(story(143, 15, events=[warned]))
    assert answer.cause is not None and answer.cause.id == "terminated"
    assert any("SIGUSR1" in item.text for item in answer.cause.evidence)


def test_the_time_limit_of_timeout_is_told_from_a_code_of_the_scripts_own() -> None:
    launcher = Event("process.appeared", START, {"pid": 100, "name": "timeout"})
    answer = verdict(story(124, None, events=[launcher]))
    assert answer.outcome == "stopped" and answer.cause is not None and answer.cause.id == "terminated"
    assert verdict(story(124, None)).cause is None
