"""At a terminal the job's turn comes after the person's; nowhere else, and never against what the user chose."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from holdfast.journal import Journal
from holdfast.supervisor import launch_context
from tests.workplace import Workplace

# Tests may run in a container, where nothing is to change: what marks one is the test's to say.
STARTED = "import sys; from holdfast.supervisor import launch_context; launch_context.MARKS = tuple(filter(None, sys.argv.pop(1).split())); launch_context.CONTAINED = ('/nowhere',); from holdfast.cli import main; sys.exit(main())"  # fmt: skip
JOB = """
    import json, os, psutil, subprocess, sys, threading
    def turn():
        session = open("/proc/self/autogroup").read().split()[-1] if os.path.exists("/proc/self/autogroup") else None
        return [os.getpriority(os.PRIO_PROCESS, 0), session, *map(int, psutil.Process().ionice())]
    if sys.argv[1:]:
        print(json.dumps(turn()))
    else:
        own = turn()
        below = json.loads(subprocess.run([sys.executable, __file__, "below"], capture_output=True).stdout)
        open("told.json", "w").write(json.dumps([own, below]))
"""
NICE, IO = 5, [int(psutil.IOPRIO_CLASS_BE), 6]
HAS_SESSIONS = Path("/proc/self/autogroup").exists()


def _turns(
    workplace: Workplace,
    *options: str,
    marks: str = "",
    terminal: bool = True,
    before: tuple[str, ...] = (),
    **environment: str,
) -> tuple[list[list[Any]], list[dict[str, Any]]]:
    """Of the job and of what it starts; and what the record says."""
    script = workplace.script(JOB)
    command = [*before, sys.executable, "-c", STARTED, marks or " ", "run", *options, "--", *script]
    clean = {name: value for name, value in os.environ.items() if name not in {*launch_context.SCHEDULERS, "container"}}
    ours, theirs = pty.openpty()
    try:
        stream = theirs if terminal else subprocess.DEVNULL
        how: dict[str, Any] = {"stdin": stream, "stdout": stream, "stderr": stream, "cwd": workplace.path}
        process = subprocess.Popen(command, env={**clean, **environment}, start_new_session=True, **how)
        os.set_blocking(ours, False)
        until = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
            try:
                os.read(ours, 1 << 16)
            except OSError:
                continue
        assert process.wait(1) == 0
    finally:
        os.close(ours)
        os.close(theirs)
    run = next((workplace.path / ".holdfast" / "runs").iterdir())
    told = json.loads((workplace.path / "told.json").read_text())
    return told, [event.data for event in Journal(run / "journal").events() if event.kind == "job.turn"]


def test_at_a_terminal_the_job_and_what_it_starts_give_way(workplace: Workplace) -> None:
    turns, told = _turns(workplace)
    session = str(NICE) if HAS_SESSIONS else None
    assert turns == [[NICE, session, *IO]] * 2
    assert told == [{"nice": NICE, "session_nice": NICE if HAS_SESSIONS else None, "io_level": IO[1]}]


def test_without_a_terminal_nothing_changes(workplace: Workplace) -> None:
    turns, told = _turns(workplace, terminal=False)
    assert [turn[0] for turn in turns] == [0, 0]
    assert turns[0][1] in ("0", None) and turns[0][2:] != IO
    assert told == []


def test_a_niceness_of_the_users_stays(workplace: Workplace) -> None:
    turns, told = _turns(workplace, before=("nice", "-n", "3"))
    assert [turn[0] for turn in turns] == [3, 3]
    assert turns[0][1] in ("0", None)
    assert told[0]["nice"] == 3


def test_an_io_priority_of_the_users_stays(workplace: Workplace) -> None:
    idle = (sys.executable, "-c", "import os, psutil, sys; psutil.Process().ionice(psutil.IOPRIO_CLASS_BE, 2); os.execvp(sys.argv[1], sys.argv[1:])")  # fmt: skip
    turns, _ = _turns(workplace, before=idle)
    assert turns[0][0] == NICE and turns[0][2:] == [int(psutil.IOPRIO_CLASS_BE), 2]


@pytest.mark.parametrize("options", [("--policy", "observe"), ("--policy", "advise")])
def test_only_protect_does_it(workplace: Workplace, options: tuple[str, ...]) -> None:
    turns, told = _turns(workplace, *options)
    assert turns[0][0] == 0 and told == []


def test_not_for_a_scheduler(workplace: Workplace) -> None:
    turns, told = _turns(workplace, SLURM_JOB_ID="7")
    assert turns[0][0] == 0 and told == []


def test_not_in_a_container(workplace: Workplace) -> None:
    turns, told = _turns(workplace, marks="proc/version")
    assert turns[0][0] == 0 and told == []


@pytest.mark.parametrize(
    ("group", "named", "contained"),
    [
        ("0::/user.slice/user-1000.slice/session-2.scope", "", False),
        ("0::/user.slice/user-1000.slice/user@1000.service/app.slice/vte-spawn-1.scope", "", False),
        ("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0", "a scheduler", False),
        ("4:memory:/slurm/uid_1000/job_7/step_batch", "a scheduler", False),
        ("0::/kubepods.slice/kubepods-burstable.slice/cri-containerd-1.scope", "a scheduler", True),
        ("0::/system.slice/docker-1f.scope", "", True),
        ("0::/machine.slice/libpod-1f.scope/container", "", True),
    ],
)
def test_whose_a_group_is(tmp_path: Path, group: str, named: str, contained: bool) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(group + "\n")
    assert launch_context.scheduler({}, tmp_path) == named
    assert launch_context.in_a_container({}, tmp_path) == contained
