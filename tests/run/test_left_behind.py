"""Processes that a script leaves behind: what was stopped is named, and what cannot be stopped is not called so."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

import psutil
import pytest

from holdfast.supervisor import job_processes
from holdfast.supervisor.job_processes import stop_left_behind

SLEEPS = "import time; time.sleep(60)"


@pytest.fixture
def helper(monkeypatch: pytest.MonkeyPatch) -> Iterator[psutil.Process]:
    started = subprocess.Popen([sys.executable, "-c", SLEEPS])
    process = psutil.Process(started.pid)

    def left_behind(but_not: frozenset[int] = frozenset()) -> list[psutil.Process]:
        return [process] if started.poll() is None else []

    monkeypatch.setattr(job_processes, "left_behind", left_behind)
    monkeypatch.setattr(job_processes, "reap", lambda: None)
    monkeypatch.setattr(job_processes, "LEAVE_S", 0.05)
    monkeypatch.setattr(job_processes, "TERMINATE_S", 2.0)
    yield process
    started.kill()
    started.wait()


def test_what_was_stopped_is_named(helper: psutil.Process) -> None:
    found = stop_left_behind(time.sleep)
    assert [str(helper.pid) in name for name in found.stopped] == [True]
    assert not found.remaining


def test_what_no_signal_ends_is_not_called_stopped(helper: psutil.Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_processes, "TERMINATE_S", 0.1)
    monkeypatch.setattr(job_processes, "_send_all", lambda processes, number: None)  # as in state D
    found = stop_left_behind(time.sleep)
    assert not found.stopped
    assert [str(helper.pid) in name for name in found.remaining] == [True]
