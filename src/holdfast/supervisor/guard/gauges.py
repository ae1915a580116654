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
# A mapped data set is read by major faults too, so those are the last choice: kernels before 5.9.
PAGES_BACK = (b"total_workingset_refault_anon ", b"workingset_refault_anon ", b"total_pgmajfault ", b"pgmajfault ")


class Gauge:
    """`taken` of `whole`, less what can be dropped; `swapped` came out of it, `swap_left` may still go there."""

    what = ""
    cause = HOST
    MARGIN_RATIO = 0.0  # of the reserve, kept free by the kernel's line around a job that has a group of its own

    def __init__(self) -> None:
        self.taken = 0.0
        self.whole = 0.0
        self.reserve = 0.0
        self.swapped = 0.0
        self.swap_left = 0.0

    @property
    def left(self) -> float:
        """Until the line that is ours to keep."""
        return self.whole - self.reserve - self.taken

    @property
    def margin(self) -> float:
        return self.MARGIN_RATIO * self.reserve

    @property
    def left_alone(self) -> float:
        """Until the kernel's line around the job alone."""
        return self.whole - self.margin - self.taken

    @property
    def left_to_the_end(self) -> float:
        """Where the job has no group of its own."""
        return self.whole - self.taken

    def read(self) -> bool:
        raise NotImplementedError


class Machine(Gauge):
    what = "memory of this machine"
    MARGIN_RATIO = 0.5

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
        # Without swap the programs' own code is what gets dropped and read again below this.
        self.reserve = min(max(0.025 * self.whole, 96.0 * MIB), 768.0 * MIB)
        return True

    @property
    def left_to_the_end(self) -> float:
        """A machine stands still before its last page is taken."""
        return self.left_alone


class Use:
    """What a group holds, its cache not counted, and what of it was swapped out."""

    def __init__(self, folder: str, version: int) -> None:
        self._files = files = GROUP_FILES[version]
        self._usage = _open(f"{folder}/{files.usage}")
        self._stat = _open(f"{folder}/memory.stat")
        self._swap = _try_open(f"{folder}/{files.swap_usage}") if files.swap_usage else None
        self._kills = _try_open(f"{folder}/{files.kills}")
        self.taken = 0.0
        self.swapped = 0.0
        self.usage = 0.0
        self.pages_back = 0  # that had been swapped out

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
        self.reserve = min(max(0.015 * self.whole, 8.0 * MIB), 256.0 * MIB)
        return True


class Budget(Gauge):
    """What the user allowed the job with `--memory`."""

    what = "the job's memory budget"
    BEYOND_RATIO = 0.1  # nothing breaks at a budget: the kernel's line is drawn so far behind it

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
        """Set from outside: by the job's own group, or by the sum of its processes."""
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
