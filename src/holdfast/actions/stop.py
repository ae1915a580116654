"""Ends processes of the job, and only those: each is checked again right before its signal."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterable

ROUNDS = 50  # a fork bomb is outrun within the first few


def stop_all(members: Callable[[], Iterable[int]], release: Callable[[], None]) -> int:
    """The whole tree, until nothing of it is left to signal. Returns how many there were.

    Stopped first, so that none of them sees another one die and starts a successor. A group frozen by the freezer of
    version 1 takes the signal only once it is released.
    """
    ended: set[int] = set()
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for _ in range(ROUNDS):
            fresh = [pid for pid in members() if pid not in ended or number == signal.SIGKILL]
            sent = [pid for pid in fresh if _send(pid, number)]
            if not sent or (number == signal.SIGSTOP and ended.issuperset(sent)):
                break
            ended.update(sent)
            if number == signal.SIGKILL:
                release()
    return len(ended)


def stop_one(pid: int, still_it: Callable[[int], bool]) -> bool:
    """Through a pidfd, so that a reused pid cannot be hit."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not still_it(pid):
            return False
        with contextlib.suppress(ProcessLookupError, PermissionError):
            signal.pidfd_send_signal(handle, signal.SIGKILL)
            return True
        return False
    finally:
        os.close(handle)


def _send(pid: int, number: int) -> bool:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
        return True
    return False
