"""How and when each rank ended, where the engine and not Holdfast is its parent.

A descriptor of the process says at once that it has ended; the kernel keeps its exit status until the parent asks for it, which
torchrun does ten times a second. Ray does at once, and then only newer kernels (6.15) still tell. A rank that raised and one that was killed for the loss of its peers lie milliseconds apart: a
reading a second would not tell which was first.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import threading
import time
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from holdfast.fleet.events import RankEnded, RankJoined
from holdfast.inside.headroom import GROUP_FILES
from holdfast.probes.cgroup_paths import hierarchy_of, membership
from holdfast.probes.kernel_files import numbers, read
from holdfast.vocabulary import Event, Sample

ROOT = Path("/")
EXIT_CODE = -1  # in /proc/PID/stat, the last field
STATE = 0  # after the name
# How the kernel is asked about a descriptor's process: what is wanted, then 12 numbers of it, the last of them its exit status.
INFO, EXIT_WANTED, GET_INFO = "=QQ11Ii", 1 << 3, 0xC040FF0B
LOOKS, LOOK_S = 5, 0.002


class RankEndings:
    """One attempt. Its thread is begun with the first rank, and ends when it is closed."""

    def __init__(self) -> None:
        self._watched: dict[int, _Rank] = {}  # by descriptor
        self.by_process: dict[int, int] = {}
        self._lock = threading.Lock()
        self._ended: deque[Event] = deque()
        self._poll = select.poll()
        self._wake: tuple[int, int] | None = None
        self._thread: threading.Thread | None = None

    def look(self, readings: Iterable[Sample | Event]) -> list[Event]:
        for reading in readings:
            if isinstance(reading, Event) and reading.kind == RankJoined.KIND:
                self._watch(RankJoined.of(reading))
        found = []
        while self._ended:
            found.append(self._ended.popleft())
        return found

    def _watch(self, joined: RankJoined) -> None:
        if joined.pid in self.by_process or not hasattr(os, "pidfd_open"):
            return
        self.by_process[joined.pid] = joined.rank
        try:
            descriptor = os.pidfd_open(joined.pid)
        except OSError:  # it has ended already, and how is not known
            self._ended.append(RankEnded(joined.pid, joined.rank, None, None).event(time.time()))
            return
        with self._lock:
            self._watched[descriptor] = _Rank(joined, _Kills.of(joined.pid))
        self._poll.register(descriptor, select.POLLIN)
        self._look_again()

    def _look_again(self) -> None:
        if self._thread is None:
            self._wake = os.pipe()
            self._poll.register(self._wake[0], select.POLLIN)
            self._thread = threading.Thread(target=self._follow, name="rank-endings", daemon=True)
            self._thread.start()
        elif self._wake is not None:
            os.write(self._wake[1], b"+")

    def _follow(self) -> None:
        wake = self._wake[0] if self._wake else -1
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor == wake:
                    if b"." in os.read(wake, 64):
                        return
                    continue
                with self._lock:
                    rank = self._watched.pop(descriptor, None)
                self._poll.unregister(descriptor)
                if rank is not None:
                    self._ended.append(rank.ended(time.time(), descriptor))
                os.close(descriptor)

    def close(self) -> None:
        if self._thread is not None and self._wake is not None:
            os.write(self._wake[1], b".")
            self._thread.join(1.0)
            for descriptor in (*self._wake, *self._watched):
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._thread, self._wake = None, None


class _Rank:
    def __init__(self, joined: RankJoined, kills: _Kills) -> None:
        self._joined, self._kills_before = joined, kills

    def ended(self, now: float, descriptor: int) -> Event:
        """Right after its end, while the kernel still has its status and its group."""
        status, kills = _status(self._joined.pid), _Kills.of(self._joined.pid)
        status = _status_kept(descriptor) if status is None else status
        code = None if status is None else os.waitstatus_to_exitcode(status)
        before = self._kills_before.count if self._kills_before.folder == kills.folder else 0
        killed_for_memory = kills.count - before if kills.folder else None
        return RankEnded(self._joined.pid, self._joined.rank, code, killed_for_memory).event(now)


class _Kills:
    """What the kernel has killed for memory in a process's own control group."""

    def __init__(self, folder: str, count: int) -> None:
        self.folder, self.count = folder, count

    @classmethod
    def of(cls, pid: int) -> _Kills:
        try:
            group = hierarchy_of("memory", membership(ROOT, pid), ROOT, os.getpid())
            if group is None or (group.version, group.path) == (1, "/"):  # that one counts what happens to anybody
                return cls("", 0)
            folder = group.folders[0]
            counts = numbers(read(f"{folder}/{GROUP_FILES[group.version].kills}"))
        except OSError:
            return cls("", 0)
        return cls(folder, counts.get("oom_kill", 0))


def _status_kept(descriptor: int) -> int | None:
    """Of a process that its parent has asked for already. The kernel keeps it with a descriptor of the process."""
    for _ in range(LOOKS):
        about = bytearray(struct.pack(INFO, EXIT_WANTED, *[0] * 13))
        try:
            fcntl.ioctl(descriptor, GET_INFO, about)
        except OSError:  # an older kernel
            return None
        mask, *_, status = struct.unpack(INFO, about)
        if mask & EXIT_WANTED:
            return int(status)
        time.sleep(LOOK_S)  # it is being taken away right now
    return None


def _status(pid: int) -> int | None:
    """None where the parent has asked for it already, or the process is somebody else's."""
    try:
        fields: list[Any] = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    except OSError:
        return None
    return int(fields[EXIT_CODE]) if fields[STATE] in (b"Z", b"X") else None
