"""Holdfast as its users start it: a process of its own, with pipes or with a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

HOLDFAST = [sys.executable, "-m", "holdfast"]
PATIENCE_S = 100.0  # for what takes a second or two on a machine that has nothing else to do


class Workplace:
    """A working directory with a script in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.started: list[subprocess.Popen[bytes]] = []

    def script(self, source: str, name: str = "train.py") -> list[str]:
        (self.path / name).write_text(textwrap.dedent(source))
        return [sys.executable, name]

    def run(self, command: list[str], *options: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
        how = {"capture_output": True, "timeout": PATIENCE_S, **how}
        return subprocess.run([*HOLDFAST, "run", *options, "--", *command], cwd=self.path, check=False, **how)

    def start(
        self, command: list[str], *options: str, before: tuple[str, ...] = (), **how: Any
    ) -> subprocess.Popen[bytes]:
        """`before`: a program that starts Holdfast itself."""
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **how}
        process = subprocess.Popen([*before, *HOLDFAST, "run", *options, "--", *command], cwd=self.path, **how)
        self.started.append(process)
        return process

    def why(self, *options: str) -> dict[str, Any]:
        """Of a run that is over. Where the disk is slow, the relay did not wait until the record of it was closed."""
        found: dict[str, Any] = wait_for(lambda: (said := self._asked(*options))["outcome"] != "running" and said)
        return found

    def _asked(self, *options: str) -> dict[str, Any]:
        done = subprocess.run(
            [*HOLDFAST, "why", "--json", *options], cwd=self.path, capture_output=True, timeout=PATIENCE_S, check=False
        )
        assert done.returncode in (0, 3), done.stderr.decode()
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def why_text(self) -> str:
        done = subprocess.run([*HOLDFAST, "why"], cwd=self.path, capture_output=True, timeout=PATIENCE_S, check=False)
        return done.stdout.decode()

    def watcher_of(self, relay: int) -> psutil.Process:
        """It leads a session of its own, which the guard, a child of the relay too, does not."""
        return wait_for(lambda: next(filter(_leads_a_session, psutil.Process(relay).children()), None))

    def script_of(self, relay: int) -> psutil.Process:
        """It leads a session of its own, which what the watcher forks for itself does not."""
        watcher = self.watcher_of(relay)
        return wait_for(lambda: next(filter(_leads_a_session, watcher.children()), None))


def _leads_a_session(process: psutil.Process) -> bool:
    return os.getsid(process.pid) == process.pid


def is_gone(pid: int) -> bool:
    """Ended; who adopted it may not have collected it yet, and the first process of some containers never does."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_for(look: Callable[[], Any], seconds: float = PATIENCE_S) -> Any:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            found = look()
        except (psutil.Error, ProcessLookupError):
            found = None
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(f"did not happen within {seconds} s")


@pytest.fixture
def workplace(tmp_path: Path) -> Iterator[Workplace]:
    place = Workplace(tmp_path)
    yield place
    for process in place.started:
        if process.poll() is None:
            for below in [*psutil.Process(process.pid).children(recursive=True), process]:
                with contextlib.suppress(ProcessLookupError):  # it may end by itself meanwhile
                    os.kill(below.pid, signal.SIGKILL)
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
