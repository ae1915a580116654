"""What can be asked of a run while it goes on: stacks, a checkpoint, a pause, its end. And `holdfast stacks`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import psutil
import pytest

from holdfast.control_socket import NAME, NoControl, Refused, ask
from holdfast.journal import Journal
from tests.workplace import HOLDFAST, PATIENCE_S, Workplace, wait_for

STEPS = """
    import os, threading, time
    import holdfast
    from holdfast.inside.api import _recorder

    def idle():
        time.sleep(300)

    def train(locked):
        for step in range(100_000):
            holdfast.step(loss=1.0)
            time.sleep(0.01)
            if step == 20:
                _recorder().on_command("checkpoint", lambda command: "saved" if os.path.exists("room") else "no room")
                print("ready", flush=True)
            if os.path.exists("hang"):
                with locked:
                    pass

    locked = threading.Lock()
    for number in range(3):
        threading.Thread(target=idle, daemon=True, name=f"idle-{number}").start()
    with locked:
        train(locked)
"""
AT_THE_LOCK = "with locked:"
SLEEPS = "import time; print('ready', flush=True); time.sleep(300)"


class Going:
    """A run that goes on."""

    def __init__(self, workplace: Workplace, source: str, *options: str) -> None:
        self.workplace = workplace
        self.process = workplace.start(workplace.script(source), *options)
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"ready\n"
        self.run: Path = next((workplace.path / ".holdfast" / "runs").iterdir())
        wait_for((self.run / NAME).exists)

    def state(self) -> str:
        return str(self.workplace.script_of(self.process.pid).status())

    def stacks(self, *options: str) -> dict[str, Any]:
        done = stacks(self.workplace, "--json", *options)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def results(self) -> list[tuple[str, str]]:
        events = Journal(self.run / "journal").events()
        return [(event.data["do"], event.data["result"]) for event in events if event.kind == "control.done"]


def stacks(workplace: Workplace, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*HOLDFAST, "stacks", *options],
        cwd=workplace.path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def test_a_run_is_paused_and_goes_on_and_is_asked_to_save_and_to_end(workplace: Workplace) -> None:
    going = Going(workplace, STEPS)
    with pytest.raises(Refused, match="no checkpoint was saved: no room"):
        ask(going.run, "checkpoint")
    (workplace.path / "room").touch()
    assert ask(going.run, "checkpoint")["result"] == "saved"
    assert ask(going.run, "pause")["result"] == "paused"
    wait_for(lambda: going.state() == psutil.STATUS_STOPPED)
    with pytest.raises(Refused, match="the job is paused"):
        ask(going.run, "checkpoint")
    assert ask(going.run, "resume")["result"] == "resumed"
    wait_for(lambda: going.state() != psutil.STATUS_STOPPED)
    ask(going.run, "pause")
    assert ask(going.run, "stop")["result"] == "asked to end with SIGTERM"
    assert going.process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    answer = workplace.why()
    assert (answer["outcome"], answer["cause"]["id"]) == ("stopped", "terminated")
    assert [do for do, _ in going.results()] == [*["checkpoint"] * 2, "pause", "checkpoint", "resume", "pause", "stop"]
    assert not (going.run / NAME).exists()


def test_a_paused_run_still_ends_when_holdfast_is_asked_to(workplace: Workplace) -> None:
    going = Going(workplace, SLEEPS, "--policy", "observe")
    ask(going.run, "pause")
    os.kill(going.process.pid, signal.SIGTERM)
    assert going.process.wait(PATIENCE_S) == 128 + signal.SIGTERM


def test_a_pause_outlives_the_guard(workplace: Workplace) -> None:
    going = Going(workplace, SLEEPS)
    ask(going.run, "pause")
    guard = wait_for(
        lambda: next((one for one in psutil.Process(going.process.pid).children() if one.name() == "hf-guard"), None)
    )
    os.kill(guard.pid, signal.SIGKILL)
    wait_for(lambda: any(event.kind == "guard.lost" for event in Journal(going.run / "journal").events()))
    assert going.state() == psutil.STATUS_STOPPED


def test_stacks_are_shown_by_the_watcher_and_without_it(workplace: Workplace) -> None:
    going = Going(workplace, STEPS)
    (workplace.path / "hang").touch()
    main = wait_for(lambda: (found := main_frame(going.stacks()))["code"] == AT_THE_LOCK and found)
    assert (main["function"], Path(main["file"]).name) == ("train", "train.py")
    text = stacks(workplace).stdout
    assert "  > " in text and "3 threads at the same place: thread idle-0" in text
    assert text.index("with locked:") < text.index("idle-0")
    os.kill(workplace.watcher_of(going.process.pid).pid, signal.SIGKILL)
    with pytest.raises(NoControl, match="its watcher is gone"):
        wait_for(lambda: ask(going.run, "stacks") and False)
    told = going.stacks()
    assert told["notes"] == ["its watcher is gone, so the processes were asked directly"]
    assert main_frame(told)["code"] == AT_THE_LOCK


def main_frame(told: dict[str, Any]) -> dict[str, Any]:
    """The innermost of the script's main thread."""
    frames = told["processes"][0]["threads"][0]["frames"]
    return frames[0] if frames else {"code": ""}


def test_where_nothing_runs_it_is_said_in_one_line(workplace: Workplace) -> None:
    assert _error(workplace) == "holdfast: no run of .holdfast is going on; start one with: holdfast run COMMAND\n"
    workplace.run(workplace.script("print('done')"), "--name", "short")
    assert _error(workplace).startswith("holdfast: no run of .holdfast is going on")
    assert "does not run any more; `holdfast why" in _error(workplace, "short")
    assert "no such run: other" in _error(workplace, "other")


def _error(workplace: Workplace, *options: str) -> str:
    done = stacks(workplace, *options)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    return done.stderr
