"""Where memory may run out, read through descriptors that were opened beforehand.

Measured: 5 µs for /proc/meminfo, 1 µs for a group's usage, 7 µs for its memory.stat, 2 µs for a pressure file.
"""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.probes.cgroup import NO_LIMIT_FROM, V1, V2
from holdfast.probes.cgroup_paths import Hierarchy, hierarchy_of, membership
from holdfast.probes.kernel_files import under

MIB = 1 << 20
HOST, CONTAINER = "host-memory-exhausted", "container-memory-limit"
# A mapped data set is read by major faults too, so those are the last choice: kernels before 5.9.
PAGES_BACK = (
    b"\ntotal_workingset_refault_anon ",
    b"\nworkingset_refault_anon ",
    b"\ntotal_pgmajfault ",
    b"\npgmajfault ",
)


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
        self._arc = _try_open(under(root, "/proc/spl/kstat/zfs/arcstats"))

    def read(self) -> bool:
        data = os.pread(self._fd, 4096, 0)
        self.whole = _field(data, b"MemTotal:") * 1024.0
        self.taken = self.whole - _field(data, b"MemAvailable:") * 1024.0 - self._cache_of_zfs()
        self.swap_left = _field(data, b"SwapFree:") * 1024.0
        self.swapped = _field(data, b"SwapTotal:") * 1024.0 - self.swap_left
        # Without swap the programs' own code is what gets dropped and read again below this.
        self.reserve = min(max(0.025 * self.whole, 96.0 * MIB), 768.0 * MIB)
        return self.whole > 0

    def _cache_of_zfs(self) -> float:
        """It gives way as the page cache does, and MemAvailable leaves it out."""
        if self._arc is None:
            return 0.0
        data = os.pread(self._arc, 1 << 15, 0)
        size, least = (data.find(key) for key in (b"\nsize ", b"\nc_min "))
        if size < 0 or least < 0:
            return 0.0
        return float(max(0, int(data[size:].split(None, 3)[2]) - int(data[least:].split(None, 3)[2])))

    @property
    def left_to_the_end(self) -> float:
        """A machine stands still before its last page is taken."""
        return self.left_alone


class Use:
    """What a group holds, its cache not counted, and what of it was swapped out."""

    def __init__(self, folder: str, version: int) -> None:
        self._names = names = V1 if version == 1 else V2
        self._cache = tuple(b"\n" + key.encode() + b" " for key in names.cache)
        self._usage = _open(f"{folder}/{names.usage}")
        self._stat = _open(f"{folder}/memory.stat")
        self._swap = _try_open(f"{folder}/memory.swap.current") if version == 2 else None
        self._kills = _try_open(f"{folder}/{names.kills}")
        self.taken = 0.0
        self.swapped = 0.0
        self.usage = 0.0
        self.pages_back = 0  # that had been swapped out

    def read(self) -> bool:
        try:
            usage, stat = _number(self._usage), b"\n" + os.pread(self._stat, 8192, 0)
        except OSError:  # the group is gone
            return False
        self.usage = float(usage or 0)
        self.taken = max(0.0, self.usage - sum(_field(stat, key) for key in self._cache))
        self.swapped = float(_field(stat, b"\ntotal_swap ") if self._swap is None else _number(self._swap) or 0)
        self.pages_back = next((_field(stat, key) for key in PAGES_BACK if key in stat), 0)
        return usage is not None

    def kernel_kills(self) -> int:
        return _field(b"\n" + os.pread(self._kills, 512, 0), b"\noom_kill ") if self._kills is not None else 0


class Group(Gauge):
    """A control group with a limit: a container's, a scheduler's, or one above the job's own."""

    what = "memory of this container"
    cause = CONTAINER
    MARGIN_RATIO = 0.25

    def __init__(self, folder: str, version: int) -> None:
        super().__init__()
        self.folder = folder
        self.use = Use(folder, version)
        self._version = version
        self._limit = _open(f"{folder}/{(V1 if version == 1 else V2).limit}")
        self._swap_limit = _try_open(f"{folder}/{'memory.memsw.limit_in_bytes' if version == 1 else 'memory.swap.max'}")

    def read(self) -> bool:
        try:
            limit = _number(self._limit)
        except OSError:
            return False
        if limit is None or limit >= NO_LIMIT_FROM or not self.use.read():
            return False
        self.whole, self.taken, self.swapped = float(limit), self.use.taken, self.use.swapped
        self.swap_left = max(0.0, self._swap_allowed() - self.swapped)
        self.reserve = min(max(0.015 * self.whole, 8.0 * MIB), 256.0 * MIB)
        return True

    def _swap_allowed(self) -> float:
        limit = _number(self._swap_limit)
        if limit is None or limit >= NO_LIMIT_FROM:
            return float("inf")
        return limit - self.whole if self._version == 1 else float(limit)


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


def _number(fd: int | None) -> int | None:
    """v2 writes `max` for none."""
    if fd is None:
        return None
    data = os.pread(fd, 64, 0).strip()
    return int(data) if data.isdigit() else None


def _field(data: bytes, key: bytes) -> int:
    at = data.find(key)
    if at < 0:
        return 0
    at += len(key)
    end = data.find(b"\n", at)
    return int(data[at:end].split()[0])
