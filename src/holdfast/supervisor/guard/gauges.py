"""Where memory may run out, read through descriptors that were opened beforehand; what the numbers mean is defined in
`holdfast.inside.headroom`.

Measured: 5 µs for /proc/meminfo, 1 µs for a group's usage, 7 µs for its memory.stat, 2 µs for a pressure file.
"""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.inside.headroom import (
    GROUP_FILES,
    V1_SWAP,
    arcstats_path,
    field,
    host_memory,
    limit_bytes,
    swap_allowed_bytes,
    working_bytes,
)
from holdfast.probes.cgroup_paths import Hierarchy, hierarchy_of, membership
from holdfast.probes.kernel_files import under

MIB = 1 << 20
HOST, CONTAINER = "host-memory-exhausted", "container-memory-limit"
# Pages read back from swap. Reading a mapped data set counts as major faults too, so those are used last (before 5.9).
PAGES_BACK = (b"total_workingset_refault_anon ", b"workingset_refault_anon ", b"total_pgmajfault ", b"pgmajfault ")


class Gauge:
    """A place where memory may run out: `taken` of `whole` bytes, page cache not counted.

    `swapped` bytes of it have been moved to swap, `swap_left` more may be.
    """

    what = ""
    cause = HOST
    MARGIN_RATIO = 0.0  # of the reserve: kept free by the limit of the job's own group

    def __init__(self) -> None:
        self.taken = 0.0
        self.whole = 0.0
        self.reserve = 0.0
        self.swapped = 0.0
        self.swap_left = 0.0

    @property
    def left(self) -> float:
        """Until the reserve is touched."""
        return self.whole - self.reserve - self.taken

    @property
    def margin(self) -> float:
        return self.MARGIN_RATIO * self.reserve

    @property
    def left_alone(self) -> float:
        """Until the limit of the job's own group, where the kernel kills inside that group."""
        return self.whole - self.margin - self.taken

    @property
    def left_to_the_end(self) -> float:
        """Until nothing is left: what counts for a job without a group of its own."""
        return self.whole - self.taken

    def read(self) -> bool:
        raise NotImplementedError


class Machine(Gauge):
    what = "memory of this machine"
    MARGIN_RATIO = 0.5
    # With less left, a machine without swap drops programs' code pages and reads them from disk again.
    RESERVE_RATIO, RESERVE_LEAST, RESERVE_MOST = 0.025, 96.0 * MIB, 768.0 * MIB

    def __init__(self, root: Path = Path("/")) -> None:
        super().__init__()
        self._fd = _open(under(root, "/proc/meminfo"))
        arcstats = arcstats_path(under(root, "/proc"))
        self._arcstats = None if arcstats is None else _try_open(arcstats)

    def read(self) -> bool:
        arcstats = b"" if self._arcstats is None else os.pread(self._arcstats, 1 << 15, 0)
        found = host_memory(os.pread(self._fd, 4096, 0), arcstats)
        if not found.total or found.available is None:
            return False
        self.whole = float(found.total)
        self.taken = self.whole - found.available
        self.swap_left = float(found.swap_free or 0)
        self.swapped = (found.swap_total or 0) - self.swap_left
        self.reserve = min(max(self.RESERVE_RATIO * self.whole, self.RESERVE_LEAST), self.RESERVE_MOST)
        return True

    @property
    def left_to_the_end(self) -> float:
        """A machine stops responding before its last page is taken."""
        return self.left_alone


class Use:
    """What a group holds, page cache not counted, and how much of it was swapped out."""

    def __init__(self, folder: str, version: int) -> None:
        self._files = files = GROUP_FILES[version]
        self._usage = _open(f"{folder}/{files.usage}")
        self._stat = _open(f"{folder}/memory.stat")
        self._swap = _try_open(f"{folder}/{files.swap_usage}") if files.swap_usage else None
        self._kills = _try_open(f"{folder}/{files.kills}")
        self.taken = 0.0
        self.swapped = 0.0
        self.usage = 0.0
        self.pages_back = 0  # how many were read back from swap

    def read(self) -> bool:
        try:
            usage, stat = int(os.pread(self._usage, 64, 0)), os.pread(self._stat, 8192, 0)
            swapped = field(stat, V1_SWAP) if self._swap is None else int(os.pread(self._swap, 64, 0))
        except OSError:  # the group is gone
            return False
        self.usage = float(usage)
        self.taken = float(working_bytes(usage, stat, self._files))
        self.swapped = float(swapped or 0)
        self.pages_back = next((count for key in PAGES_BACK if (count := field(stat, key)) is not None), 0)
        return True

    def kernel_kills(self) -> int:
        return (field(os.pread(self._kills, 512, 0), b"oom_kill ") or 0) if self._kills is not None else 0


class Group(Gauge):
    """A control group with a limit: a container's, a scheduler's, or one above the job's own."""

    what = "memory of this container"
    cause = CONTAINER
    MARGIN_RATIO = 0.25
    RESERVE_RATIO, RESERVE_LEAST, RESERVE_MOST = 0.015, 8.0 * MIB, 256.0 * MIB

    def __init__(self, folder: str, version: int) -> None:
        super().__init__()
        self.folder = folder
        self.use = Use(folder, version)
        self._files = files = GROUP_FILES[version]
        self._limit = _open(f"{folder}/{files.limit}")
        self._high = _try_open(f"{folder}/{files.throttled_from}") if files.throttled_from else None
        self._swap_limit = _try_open(f"{folder}/{files.swap_limit}")

    def read(self) -> bool:
        try:
            limit = limit_bytes(os.pread(self._limit, 64, 0), _content(self._high))
            swap_limit = _content(self._swap_limit)
        except OSError:
            return False
        if limit is None or not self.use.read():
            return False
        self.whole, self.taken, self.swapped = float(limit), self.use.taken, self.use.swapped
        self.swap_left = max(0.0, swap_allowed_bytes(swap_limit, limit, self._files) - self.swapped)
        self.reserve = min(max(self.RESERVE_RATIO * self.whole, self.RESERVE_LEAST), self.RESERVE_MOST)
        return True


class Budget(Gauge):
    """What the user allowed the job with `--memory`."""

    what = "the job's memory budget"
    BEYOND_RATIO = 0.1  # nothing breaks at a budget, so the group's limit is set this far above it

    def __init__(self, budget_bytes: int) -> None:
        super().__init__()
        self.whole = float(budget_bytes)

    @property
    def left_alone(self) -> float:
        return (1 + self.BEYOND_RATIO) * self.whole - self.taken

    @property
    def left_to_the_end(self) -> float:
        return self.left_alone

    def read(self) -> bool:
        """`taken` is set by the controller: what the job's own group or its processes hold."""
        return True


def group_of(pid: int, root: Path = Path("/")) -> Hierarchy | None:
    try:
        return hierarchy_of("memory", membership(root, pid), root, pid)
    except OSError:
        return None


def limited_groups(pid: int, but_not: str | None = None, root: Path = Path("/")) -> list[Group]:
    """Every group above a process that has a limit."""
    found = group_of(pid, root)
    groups = []
    for folder in found.folders if found is not None else ():
        if found is None or folder == but_not:
            continue
        try:
            group = Group(folder, found.version)
        except OSError:
            continue
        if group.read():
            groups.append(group)
    return groups


def _open(path: str) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def _try_open(path: str) -> int | None:
    try:
        return _open(path)
    except OSError:
        return None


def _content(fd: int | None) -> bytes:
    return b"" if fd is None else os.pread(fd, 64, 0)
