"""Pauses the whole job for a moment and resumes it: by its cgroup freezer, or by signals."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable
from typing import Protocol

ROUNDS = 4  # what is forked while the others are being stopped


class Hold(Protocol):
    def hold(self) -> bool: ...

    def release(self) -> None: ...


class Freezer:
    """v2 `cgroup.freeze`, v1 `freezer.state`: the kernel stops every process, also those forked meanwhile."""

    def __init__(self, folder: str, version: int) -> None:
        name, self._frozen, self._thawed = (
            ("freezer.state", b"FROZEN", b"THAWED") if version == 1 else ("cgroup.freeze", b"1", b"0")
        )
        self._fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CLOEXEC)

    def hold(self) -> bool:
        try:
            return os.write(self._fd, self._frozen) > 0
        except OSError:
            return False

    def release(self) -> None:
        with contextlib.suppress(OSError):
            os.write(self._fd, self._thawed)


class Signals:
    """SIGSTOP to each process. One that somebody else has stopped (Ctrl-Z) stays as it is."""

    def __init__(self, members: Callable[[], Iterable[tuple[int, str]]]) -> None:
        self._members = members
        self._held: list[int] = []

    def hold(self) -> bool:
        for _ in range(ROUNDS):
            fresh = [pid for pid, state in self._members() if pid not in self._held and state not in "TtZX"]
            if not fresh:
                break
            for pid in fresh:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGSTOP)
                    self._held.append(pid)
        return bool(self._held)

    def release(self) -> None:
        for pid in self._held:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGCONT)
        self._held = []
