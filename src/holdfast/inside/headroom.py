"""How much memory this process may still take before the kernel says no: the machine, and each group it is in.

Page cache is given up when memory is needed, so it counts as left; so does swap, where the group may use it. The
supervisor says where the groups are (`settings.json`); nothing here is remembered, since others take memory, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Optional

NO_LIMIT_FROM = 1 << 62  # version 1 writes such a number where there is none
CONTAINER, MACHINE = "container", "machine"


class Left(NamedTuple):
    bytes: int
    of: str  # what has no more: the container, or the machine


def left(groups: Any, meminfo: str = "/proc/meminfo") -> Optional[Left]:
    """None where nothing says."""
    machine = _numbers(meminfo)
    swap = machine.get("SwapFree", 0)
    found = [Left(size, CONTAINER) for group in groups or () if (size := _left_in(group, swap)) is not None]
    if "MemAvailable" in machine:
        found.append(Left(machine["MemAvailable"] + swap, MACHINE))
    return min(found, default=None)


def _left_in(group: dict[str, Any], swap_free: int) -> Optional[int]:
    try:
        limit, used = _number(group["limit"]), _number(group["usage"])
    except (OSError, ValueError):  # the root group has no limit; version 2 writes `max`
        return None
    if limit >= NO_LIMIT_FROM:
        return None
    stat = _numbers(group["stat"])
    cache = sum(stat.get(name, 0) for name in group["cache"])
    return max(0, limit - used + cache + min(swap_free, _swap_allowed(group, limit)))


def _swap_allowed(group: dict[str, Any], limit: int) -> int:
    try:
        swap = _number(group["swap"])
    except (OSError, ValueError):  # swap is not counted here; version 2 writes `max`
        return NO_LIMIT_FROM
    return max(0, swap - limit) if group["swap_with_memory"] else swap


def _number(path: str) -> int:
    with open(path, "rb") as file:
        return int(file.read())


def _numbers(path: str) -> dict[str, int]:
    """`name value` and `name: value kB`, in bytes."""
    found: dict[str, int] = {}
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            for line in file:
                words = line.split()
                if len(words) > 1 and words[1].isdigit():
                    found[words[0].rstrip(":")] = int(words[1]) << (10 if words[2:] == ["kB"] else 0)
    except OSError:
        pass
    return found
