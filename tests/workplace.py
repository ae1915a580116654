"""Holdfast as its users start it: a process of its own, with pipes or with a terminal."""

from __future__ import annotations

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


class Workplace:
    """A working directory with a script in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.started: list[subprocess.Popen[bytes]] = []

    def script(self, source: str, name: str = "train.py") -> list[str]:
        (self.path / name).write_text(textwrap.dedent(source))
        return [sys.executable, name]

    def run(self, command: list[str], *options: str, **how: Any) -> subprocess.CompletedProcess[bytes]:
        how = {"capture_output": True, "timeout": 60, **how}
        return subprocess.run([*HOLDFAST, "run", *options, "--", *command], cwd=self.path, check=False, **how)

    def start(self, command: list[str], *options: str, **how: Any) -> subprocess.Popen[bytes]:
        how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL, **how}
        process = subprocess.Popen([*HOLDFAST, "run", *options, "--", *command], cwd=self.path, **how)
        self.started.append(process)
        return process

    def why(self, *options: str) -> dict[str, Any]:
        done = subprocess.run(
            [*HOLDFAST, "why", "--json", *options], cwd=self.path, capture_output=True, timeout=60, check=False
        )
        assert done.returncode in (0, 3), done.stderr.decode()
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    def why_text(self) -> str:
        done = subprocess.run([*HOLDFAST, "why"], cwd=self.path, capture_output=True, timeout=60, check=False)
        return done.stdout.decode()

    def watcher_of(self, relay: int) -> psutil.Process:
        """Its guard is a child of the relay too."""
        return wait_for(
            lambda: next((one for one in psutil.Process(relay).children() if one.name() != "hf-guard"), None)
        )

    def script_of(self, relay: int) -> psutil.Process:
        """It leads a session of its own, which what the watcher forks for itself does not."""
        watcher = self.watcher_of(relay)
        return wait_for(lambda: next((one for one in watcher.children() if os.getsid(one.pid) == one.pid), None))


def wait_for(look: Callable[[], Any], seconds: float = 20.0) -> Any:
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
                os.kill(below.pid, signal.SIGKILL)
            process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe:
                pipe.close()
