"""The job's processes: all descendants of this one, since relay and watcher are both subreapers."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from typing import NamedTuple

import psutil

from holdfast.supervisor.launch import reap

LEAVE_S = 1.0  # for helpers to end by themselves
TERMINATE_S = 2.0  # after SIGTERM; then SIGKILL


def left_behind(but_not: frozenset[int] = frozenset()) -> list[psutil.Process]:
    with contextlib.suppress(psutil.Error):
        below = psutil.Process().children(recursive=True)
        return [
            process for process in below if process.pid not in but_not and _runs(process) and not _is_guard(process)
        ]
    return []


def _runs(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    return False


def _is_stopped(process: psutil.Process) -> bool:
    with contextlib.suppress(psutil.Error):  # it may end between two system calls
        return bool(process.status() == psutil.STATUS_STOPPED)
    return False


def _is_guard(process: psutil.Process) -> bool:
    """The guard is a child of the relay too, and not part of the job."""
    return _name(process) == "hf-guard"


def release_held() -> int:
    """A guard that was killed may have left the job held. Returns how many processes go on."""
    held = [process for process in left_behind() if _is_stopped(process)]
    _send_all(held, signal.SIGCONT)
    return len(held)


class LeftBehind(NamedTuple):
    stopped: list[str]
    remaining: list[str]  # even SIGKILL waits for a process that is in the kernel (state D)


def stop_left_behind(idle: Callable[[float], None], but_not: frozenset[int] = frozenset()) -> LeftBehind:
    """After the script has ended: let its helpers leave, then ask them, then end them. Names what it had to stop.

    `idle(seconds)` is called while waiting, so that output keeps flowing.
    """
    asked: list[psutil.Process] = []
    names: dict[int, str] = {}
    for send, patience_s in ((None, LEAVE_S), (signal.SIGTERM, TERMINATE_S), (signal.SIGKILL, TERMINATE_S)):
        until = time.monotonic() + patience_s
        processes = left_behind(but_not)
        if send is not None:
            if send is signal.SIGTERM:
                asked = processes
                names = {process.pid: f"{_name(process)} (pid {process.pid})" for process in processes}
            _send_all(processes, send)
        while processes and time.monotonic() < until:
            idle(0.02)
            reap()
            processes = left_behind(but_not)
            if send is signal.SIGKILL:
                _send_all(processes, send)  # what was forked meanwhile
        if not processes:
            break
    remaining = {process.pid for process in processes}
    return LeftBehind(
        [names[process.pid] for process in asked if process.pid not in remaining],
        [names.get(process.pid, f"{_name(process)} (pid {process.pid})") for process in processes],
    )


def _send_all(processes: list[psutil.Process], number: signal.Signals) -> None:
    for process in processes:
        with contextlib.suppress(psutil.Error, ProcessLookupError):
            process.send_signal(number)
            if number is not signal.SIGKILL:
                process.send_signal(signal.SIGCONT)


def _name(process: psutil.Process) -> str:
    with contextlib.suppress(psutil.Error):
        return str(process.name())
    return "?"
