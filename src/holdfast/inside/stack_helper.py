"""A thread of ours that writes all stacks when asked: the main thread cannot while it waits in native code.

Begun at a step's boundary and only where the process has further threads already: a fork of a process with a single thread is
safe, and Python 3.12 and later warn of one with more. It stands in a system call without the GIL and is no thread of
`threading`, so nobody waits for it, counts it or sees it in a list.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import os

from . import stacks
from .never_raise import guarded


class StackHelper:
    def __init__(self) -> None:
        self._pid = 0

    def look(self, _moment: float) -> None:
        """At a step's boundary; one comparison once it runs. A forked child that trains gets one of its own."""
        if self._pid == os.getpid() or _threads() < 2:
            return
        self._pid = os.getpid()
        descriptor = stacks.found()
        if descriptor is not None:
            _thread.start_new_thread(_answer, (descriptor,))


@guarded
def _answer(descriptor: int) -> None:
    _signal.pthread_sigmask(_signal.SIG_BLOCK, {stacks.ASK})
    with open(f"/proc/self/task/{_thread.get_native_id()}/comm", "w") as name:
        name.write(stacks.HELPER)
    while True:
        _signal.sigwait({stacks.ASK})
        stacks.write(descriptor)


def _threads() -> int:
    with open("/proc/self/stat", "rb") as file:
        return int(file.read().rpartition(b")")[2].split()[17])
