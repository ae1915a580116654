"""Before the first step a process whose memory rises is asked where it is; nobody else is ever signalled."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.supervisor.startup_stacks import StartupStacks
from holdfast.vocabulary import Event, Sample

SIGNAL = signal.SIGRTMAX - 8
LISTENS = f"""
import faulthandler, sys
answers = open(sys.argv[1], "w")
faulthandler.register({int(SIGNAL)}, file=answers, all_threads=False)
"""
GROWS = """
def load_everything():
    kept = []
    print("ready", flush=True)
    while sys.stdin.readline():
        kept.append(bytearray(120 << 20))
        print("grown", flush=True)

import sys
load_everything()
"""


@contextmanager
def script(tmp_path: Path, source: str) -> Iterator[subprocess.Popen[str]]:
    (tmp_path / "train.py").write_text(source)
    command = [sys.executable, "train.py", str(tmp_path / "answers")]
    with subprocess.Popen(command, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdin is not None
        process.stdout.readline()
        yield process
        process.stdin.close()
        process.wait()


def grow(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None and process.stdin is not None
    process.stdin.write("more\n")
    process.stdin.flush()
    process.stdout.readline()


def ready(process: subprocess.Popen[str], tmp_path: Path) -> Event:
    return Event("stack.ready", 0.0, {"pid": process.pid, "signal": int(SIGNAL), "path": str(tmp_path / "answers")})


def test_where_it_is_comes_with_the_line_of_code(tmp_path: Path) -> None:
    with script(tmp_path, LISTENS + GROWS) as process:
        watch = StartupStacks(tmp_path)
        assert watch.look([ready(process, tmp_path)], 1.0) == []
        grow(process)
        assert watch.look([], 2.0) == []
        assert watch.pace_s < 1.0
        answers: list[Event] = []
        deadline = time.monotonic() + 60
        while not answers and time.monotonic() < deadline:
            time.sleep(0.01)
            answers = watch.look([], 3.0)
        (answer,) = answers
    assert answer.kind == "startup.stack"
    assert answer.data["held_bytes"] - answer.data["base_bytes"] > 100 << 20
    functions = [frame["function"] for frame in answer.data["frames"]]
    assert functions[-2:] == ["load_everything", "<module>"]
    assert answer.data["frames"][-1]["code"] == "load_everything()"


def test_once_it_trains_nobody_is_asked(tmp_path: Path) -> None:
    with script(tmp_path, LISTENS + GROWS) as process:
        watch = StartupStacks(tmp_path)
        watch.look([ready(process, tmp_path), Sample("train.steps_count", 1, 1.0)], 1.0)
        for _ in range(3):
            grow(process)
            assert watch.look([], 2.0) == []
    assert (tmp_path / "answers").read_text() == ""


def test_a_program_that_took_its_place_and_knows_no_such_signal_is_left_alone(tmp_path: Path) -> None:
    with script(tmp_path, GROWS) as process:
        watch = StartupStacks(tmp_path)
        watch.look([ready(process, tmp_path)], 1.0)
        for _ in range(3):
            grow(process)
            watch.look([], 2.0)
        assert process.poll() is None
    assert process.returncode == 0


@pytest.mark.parametrize("growth", [8, 3000])
def test_it_is_asked_a_bounded_number_of_times(tmp_path: Path, growth: int) -> None:
    """By a fake of /proc: from little to terabytes."""
    from holdfast.supervisor import startup_stacks

    asked: list[int] = []
    folder = tmp_path / "77"
    folder.mkdir()

    def holds(mib: int) -> None:
        caught = f"SigCgt:\t{1 << (int(SIGNAL) - 1):016x}\n"
        (folder / "status").write_text(f"Name:\tpython\nVmRSS:\t{mib << 10} kB\nRssFile:\t0 kB\n{caught}")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(startup_stacks.os, "kill", lambda pid, number: asked.append(pid))
        watch = StartupStacks(tmp_path, proc=tmp_path)
        about = {"pid": 77, "signal": int(SIGNAL), "path": str(tmp_path / "answers")}
        holds(200)
        watch.look([Event("stack.ready", 0.0, about)], 0.0)
        for i in range(1000):
            holds(200 + i * growth)
            watch.look([], float(i))
    assert 5 < len(asked) <= startup_stacks.MOST
