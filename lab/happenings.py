"""What is done to a program from outside while it runs: signals, a neighbour out of memory, Ctrl-Z, an answer at a prompt."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from .case import Case, Ending, Limits
from .stage import Stage


@dataclass(slots=True)
class Happening:
    """Done once a text was printed; it is given the process that was started."""

    after_output: str
    do: Callable[[int], None]
    done: bool = False


@dataclass(frozen=True, slots=True)
class Means:
    """What the runner has prepared for this run."""

    scratch: Path
    bare: bool
    seed: int | None = None
    stdin: int = subprocess.DEVNULL
    terminal: int | None = None  # the other end of it, where that is a terminal
    freeze: Callable[[], None] | None = None  # the file system of its own stops answering…
    let_go: Callable[[], None] | None = None  # …and whatever waits for it gets an error


def happenings(case: Case, healthy: bool, means: Means) -> list[Happening]:
    found = []
    if (neighbour := case.neighbour) is not None:
        name = f"{means.scratch.name}-other"
        found.append(Happening(neighbour.after_output, lambda _: _exhaust_neighbour(neighbour.memory, name)))
    if (suspended := case.suspended) is not None:
        found.append(Happening(suspended.after_output, lambda pid: _suspend(pid, suspended.seconds, means.bare)))
    if (typed := case.typed) is not None:
        found.append(Happening(typed.after_output, lambda _: _type(means.terminal, typed.text, typed.after_s)))
    if (files := case.frozen_files) is not None and not healthy and means.freeze is not None:
        freeze = means.freeze
        found.append(Happening(files.after_output, lambda _: freeze()))
    if case.ending is not None and not healthy:
        found.append(_ending(case.name, case.ending, means))
    return found


def _ending(name: str, ending: Ending, means: Means) -> Happening:
    def send(started: int) -> None:
        find = {"holdfast": lambda: started, "script": lambda: _script_in(means.scratch)}
        receiver = find.get(ending.to, lambda: _worker_in(means.scratch))()
        with suppress(ProcessLookupError):  # it has just ended by itself, which is told
            if receiver is not None:
                os.kill(receiver, ending.signal)

    moments = ending.after_output
    moment = moments[0] if means.seed is None else random.Random(f"{name} ending {means.seed}").choice(moments)
    return Happening(moment, send)


def _exhaust_neighbour(memory: int, name: str) -> None:
    greedy = [sys.executable, "-c", f"bytearray({4 * memory})"]
    with Stage(Limits(memory=memory), name) as stage:
        subprocess.run(stage.wrap(greedy), cwd="/", check=False)


def _suspend(pid: int, seconds: float, bare: bool) -> None:
    """The kernel ignores a terminal's stop in a group without a parent in its session, as a bare program's is here."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP if bare else signal.SIGTSTP)
        time.sleep(seconds)
        os.kill(pid, signal.SIGCONT)


def _type(terminal: int | None, text: str, after_s: float) -> None:
    time.sleep(after_s)
    if terminal is not None:
        os.write(terminal, text.encode())


def _script_in(scratch: Path) -> int | None:
    """The oldest process in the scratch folder that runs train.py and is no part of Holdfast."""
    scripts = [
        process
        for process in processes_in(scratch)
        if "train.py" in process.info["cmdline"] and "holdfast" not in process.info["cmdline"]
    ]
    return min(scripts, key=lambda process: process.info["create_time"]).pid if scripts else None


def _worker_in(scratch: Path) -> int | None:
    """The newest process below the script that is no server of multiprocessing's."""
    script = _script_in(scratch)
    if script is None:
        return None
    below = [child for child in psutil.Process(script).children(recursive=True) if not _is_server(child)]
    return max(below, key=lambda process: process.create_time()).pid if below else None


def _is_server(process: psutil.Process) -> bool:
    with suppress(psutil.Error):
        return any("resource_tracker" in word or "forkserver" in word for word in process.cmdline())
    return True


def processes_in(scratch: Path) -> list[psutil.Process]:
    found = psutil.process_iter(["cwd", "cmdline", "create_time", "name"])
    return [process for process in found if process.info["cwd"] == str(scratch)]
