"""How much memory is left: of the machine, and of each control group (container, scheduler slot) above a process.

The one definition of both. The guard, the probes and the part inside the training process read the files each in their
own way (open descriptors, a root that a test can fake, plain paths) and hand the bytes to the functions here.

Page cache is dropped when memory is needed, so it counts as left. Swap is kept apart: what is left before the machine
gets slow is without it, what is left before the kernel refuses (`left`) is with it, as far as the group may use it.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple, Optional, Tuple

NO_LIMIT_FROM = 1 << 62  # version 1 writes 9223372036854771712 where there is no limit; version 2 writes `max`
CONTAINER, MACHINE = "container", "machine"
NEW_LINE = 10  # a byte
MEMINFO, ARCSTATS = "meminfo", "spl/kstat/zfs/arcstats"  # below /proc


class GroupFiles(NamedTuple):
    """What a version of control groups calls the files and fields of its memory controller."""

    limit: str
    throttled_from: str  # beyond it allocations are slowed down until the job stands still; version 1 has none
    usage: str
    peak: str
    kills: str
    swap_limit: str
    swap_limit_counts_memory: bool
    swap_usage: str  # a file; in version 1 it is a field of memory.stat, V1_SWAP
    cache: Tuple[bytes, bytes]  # fields of memory.stat: of the group and all below it, in both versions


V1 = GroupFiles(
    limit="memory.limit_in_bytes",
    throttled_from="",
    usage="memory.usage_in_bytes",
    peak="memory.max_usage_in_bytes",
    kills="memory.oom_control",
    swap_limit="memory.memsw.limit_in_bytes",
    swap_limit_counts_memory=True,
    swap_usage="",
    cache=(b"total_inactive_file ", b"total_active_file "),
)
V2 = GroupFiles(
    limit="memory.max",
    throttled_from="memory.high",
    usage="memory.current",
    peak="memory.peak",  # from Linux 5.19 on
    kills="memory.events",
    swap_limit="memory.swap.max",
    swap_limit_counts_memory=False,
    swap_usage="memory.swap.current",
    cache=(b"inactive_file ", b"active_file "),
)
GROUP_FILES = {1: V1, 2: V2}
V1_SWAP = b"total_swap "  # of memory.stat; absent where the kernel does not account for swap


class HostMemory(NamedTuple):
    """In bytes; None where the kernel does not say."""

    total: Optional[int]
    available: Optional[int]
    swap_total: Optional[int]
    swap_free: Optional[int]


def field(data: bytes, key: bytes) -> Optional[int]:
    """Of `key: value kB` (the key with its colon; in bytes then) or `key value` (with its blank) lines; 1 µs."""
    at = data.find(key)
    while at > 0 and data[at - 1] != NEW_LINE:  # `Cached:` is also the end of `SwapCached:`
        at = data.find(key, at + 1)
    if at < 0:
        return None
    start, end = at + len(key), data.find(b"\n", at)
    value = data[start:end] if end > 0 else data[start:]
    try:
        return int(value[:-3]) << 10 if value.endswith(b" kB") else int(value)
    except ValueError:
        return None


def host_memory(meminfo: bytes, arcstats: bytes = b"") -> HostMemory:
    total = field(meminfo, b"MemTotal:")
    available = field(meminfo, b"MemAvailable:")
    if available is None:  # before Linux 3.14: free memory and the page cache without tmpfs comes nearest
        free, cached = field(meminfo, b"MemFree:"), field(meminfo, b"Cached:")
        if free is not None and cached is not None:
            available = max(0, free + (field(meminfo, b"Buffers:") or 0) + cached - (field(meminfo, b"Shmem:") or 0))
    if available is not None and arcstats:
        available += reclaimable_zfs_cache(arcstats)
        available = available if total is None else min(available, total)
    return HostMemory(total, available, field(meminfo, b"SwapTotal:"), field(meminfo, b"SwapFree:"))


def reclaimable_zfs_cache(arcstats: bytes) -> int:
    """ZFS keeps a cache of its own (ARC), which gives way as the page cache does; MemAvailable leaves it out."""
    size, least = (_zfs_field(arcstats, key) for key in (b"\nsize ", b"\nc_min "))
    return 0 if size is None or least is None else max(0, size - least)


def _zfs_field(arcstats: bytes, key: bytes) -> Optional[int]:
    """`key type value`."""
    at = arcstats.find(key)
    words = arcstats[at : arcstats.find(b"\n", at + 1)].split() if at >= 0 else []
    return int(words[2]) if len(words) > 2 and words[2].isdigit() else None


def arcstats_path(proc: str = "/proc") -> Optional[str]:
    """None without ZFS, and where another file system shows a container's numbers as meminfo (lxcfs): ZFS's cache is the
    host's, and no part of those."""
    path = f"{proc}/{ARCSTATS}"
    try:
        return path if os.stat(path).st_dev == os.stat(f"{proc}/{MEMINFO}").st_dev else None
    except OSError:
        return None


def limit_bytes(*contents: bytes, machine_bytes: Optional[int] = None) -> Optional[int]:
    """The tightest of a group's limit files; None where none of them binds, and where the machine has less anyway."""
    limits = [int(data) for data in contents if data.strip().isdigit()]
    found = min((limit for limit in limits if limit < NO_LIMIT_FROM), default=None)
    return None if found is None or (machine_bytes is not None and found > machine_bytes) else found


def working_bytes(usage: int, stat: bytes, files: GroupFiles) -> int:
    """What a group holds, less the page cache that the kernel drops when the group needs memory."""
    inactive, active = files.cache
    return max(0, usage - (field(stat, inactive) or 0) - (field(stat, active) or 0))


def swap_allowed_bytes(swap_limit: bytes, limit: int, files: GroupFiles) -> float:
    """How much of a group may be in swap; infinite where nothing limits it."""
    found = limit_bytes(swap_limit)
    if found is None:
        return float("inf")
    return max(0, found - limit) if files.swap_limit_counts_memory else found


class Left(NamedTuple):
    bytes: int
    of: str  # what has no more: the container, or the machine


def left(groups: Any, proc: str = "/proc") -> Optional[Left]:
    """How much more this process can be given before the kernel refuses; None where nothing says.

    The supervisor says where the groups are (`settings.json`). Nothing is remembered: others take memory, too.
    """
    arcstats = arcstats_path(proc)
    machine = host_memory(_content(f"{proc}/{MEMINFO}"), _content(arcstats) if arcstats else b"")
    swap = machine.swap_free or 0
    found = [Left(size, CONTAINER) for group in groups or () if (size := _left_in(group, swap)) is not None]
    if machine.available is not None:
        found.append(Left(machine.available + swap, MACHINE))
    return min(found, default=None)


def _left_in(group: Any, swap_free: int) -> Optional[int]:
    folder, files = group["folder"], GROUP_FILES[group["version"]]
    high = _content(f"{folder}/{files.throttled_from}") if files.throttled_from else b""
    limit, usage = limit_bytes(_content(f"{folder}/{files.limit}"), high), _content(f"{folder}/{files.usage}")
    if limit is None or not usage.strip().isdigit():  # the root group has no limit
        return None
    working = working_bytes(int(usage), _content(f"{folder}/memory.stat"), files)
    swap = min(swap_free, swap_allowed_bytes(_content(f"{folder}/{files.swap_limit}"), limit, files))
    return max(0, int(limit - working + swap))


def _content(path: str) -> bytes:
    """Empty where it cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""
