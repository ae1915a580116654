"""Starts the script as it would have started without us: own session, own signals, own oom score."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import signal
import struct
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

from holdfast.actions import contain
from holdfast.actions.contain import Groups
from holdfast.inside import settings
from holdfast.supervisor.streams import Streams
from holdfast.supervisor.task import Task
from holdfast.supervisor.toughen import restore_oom_score

BOOTSTRAP = Path(__file__).parent.parent / "inside" / "bootstrap"


class CannotStart(Exception):
    def __init__(self, errno: int) -> None:
        super().__init__(os.strerror(errno))
        self.errno = errno


def launch(
    command: Sequence[str],
    streams: Streams,
    environment: Mapping[str, str],
    signal_mask: set[int],
    oom_score: str | None,
    *,
    groups: Groups | None = None,
) -> int:
    """Forks and executes; returns the pid once the kernel has accepted the program."""
    told, tell = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(told)
            if groups is not None:
                contain.enter(groups)
            _become(command, streams, environment, signal_mask, oom_score)
        except OSError as error:
            os.write(tell, struct.pack("<i", error.errno or 0))
        finally:
            os._exit(127)
    os.close(tell)
    answer = os.read(told, 4)  # closed by a successful exec
    os.close(told)
    if answer:
        os.waitpid(pid, 0)
        raise CannotStart(struct.unpack("<i", answer)[0])
    return pid


def _become(
    command: Sequence[str],
    streams: Streams,
    environment: Mapping[str, str],
    signal_mask: set[int],
    oom_score: str | None,
) -> None:
    os.setsid()
    if streams.slave is not None:
        fcntl.ioctl(streams.slave, termios.TIOCSCTTY, 0)
    # Copied out of the way first: one of them may itself be numbered 0, 1 or 2.
    copies = [
        fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) if fd > 2 or fd != i else fd
        for i, fd in enumerate(streams.script_fds)
    ]
    for target, copy in enumerate(copies):
        if copy != target:
            os.dup2(copy, target, inheritable=True)
    restore_oom_score(oom_score)
    for ignored_by_python in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(ignored_by_python, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, signal_mask)
    os.execvpe(command[0], list(command), dict(environment))


def script_environment(environment: Mapping[str, str], channel: Path | None) -> dict[str, str]:
    """A native crash prints the Python stack of every thread; and with a channel, Python finds our bootstrap."""
    ours = {"PYTHONFAULTHANDLER": "1", **environment}
    if channel is not None:
        paths = [str(BOOTSTRAP), *filter(None, [environment.get("PYTHONPATH")])]
        ours |= {"PYTHONPATH": os.pathsep.join(paths), "HOLDFAST_CHANNEL": str(channel)}
    return ours


def leave_settings(task: Task, attempt: int = 1) -> None:
    """What the part inside the training process is to do in this attempt. A disk that takes nothing means it only watches."""
    if task.channel is None or task.directory is None:
        return
    wanted = {"policy": task.policy, "attempt": attempt}
    with contextlib.suppress(OSError):
        (task.channel / settings.FILE).write_text(json.dumps(wanted))


def reap() -> dict[int, int]:
    """Collects every child that has ended: pid -> wait status."""
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status
