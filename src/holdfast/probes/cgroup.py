"""The control group the job lives in: the limit that binds, how near it is, and what the kernel did about it."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from holdfast.probes.cgroup_paths import Hierarchy, hierarchy_of, membership
from holdfast.probes.contract import Missing, Reading, Scope
from holdfast.probes.kernel_files import missing, numbers, read, under, why
from holdfast.vocabulary import Event, Sample

LIMITS_EVERY_S = 5.0
NO_LIMIT_FROM = 1 << 62  # v1 writes 9223372036854771712 for none
NO_LIMIT = "no limit"
OWN_GROUP = "/holdfast-job-"

MEMORY_SIGNALS = (
    "cgroup.memory_limit_bytes",
    "cgroup.memory_usage_bytes",
    "cgroup.memory_working_bytes",
    "cgroup.memory_peak_bytes",
    "cgroup.memory_high_bytes",
    "cgroup.oom_kill_count",
    "cgroup.limit_hit_count",
    "cgroup.swap_usage_bytes",
)
PIDS_SIGNALS = ("cgroup.pids_limit_count", "cgroup.pids_count", "cgroup.pids_refused_count")


@dataclass(frozen=True, slots=True)
class Names:
    """The two versions keep the same facts under different names."""

    limit: str
    usage: str
    peak: str
    cache: tuple[str, str]
    kills: str
    swap: str


V1 = Names(
    limit="memory.limit_in_bytes",
    usage="memory.usage_in_bytes",
    peak="memory.max_usage_in_bytes",
    cache=("total_inactive_file", "total_active_file"),
    kills="memory.oom_control",
    swap="total_swap",
)
V2 = Names(
    limit="memory.max",
    usage="memory.current",
    peak="memory.peak",  # from Linux 5.19 on
    cache=("inactive_file", "active_file"),
    kills="memory.events",
    swap="",
)


@dataclass(frozen=True, slots=True)
class Use:
    folder: str
    limit: int | None
    usage: int
    working: int
    stat: dict[str, int]

    @property
    def headroom(self) -> float:
        return float("inf") if self.limit is None else self.limit - self.working


class Cgroup:
    name = "cgroup"
    every_s = 0.0
    signals = MEMORY_SIGNALS + PIDS_SIGNALS

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._machine_bytes = _memory_total(scope)
        self._belonging = b""
        self._memory: Hierarchy | None = None
        self._pids: Hierarchy | None = None
        self._limits: dict[str, int | None] = {}
        self._limits_due = float("-inf")
        self._to_announce = True
        try:
            self._settle(membership(scope.root, scope.script_pid))
        except OSError as error:
            raise Missing(f"no control groups ({why(error)})") from None
        if self._memory is None and self._pids is None:
            raise Missing("no control group here counts memory or processes")

    def read(self, now: float) -> list[Reading]:
        self._follow()
        if self._memory is None:
            memory = list[Reading](missing(MEMORY_SIGNALS, now, "no control group counts memory here"))
        else:
            try:
                memory = self._read_memory(self._memory, now)
            except OSError as error:
                memory = list(missing(MEMORY_SIGNALS, now, _gone(error)))
        return memory + self._read_pids(now)

    def closing(self, now: float) -> list[Reading]:
        self._limits_due = float("-inf")
        return self.read(now)

    def _settle(self, belonging: bytes) -> None:
        root, pid = self._scope.root, self._scope.script_pid
        memory = hierarchy_of("memory", belonging, root, pid)
        if self._memory is not None and (memory is None or (memory.path == "/" and self._memory.path != "/")):
            return  # a process on its way out: v1 then shows it in the root group
        self._to_announce = memory != self._memory or self._to_announce
        self._memory, self._pids = memory, hierarchy_of("pids", belonging, root, pid)
        self._belonging = belonging
        self._limits_due = float("-inf")

    def _follow(self) -> None:
        """The script may be put into another group after it started."""
        try:
            belonging = membership(self._scope.root, self._scope.script_pid)
            if belonging and belonging != self._belonging:
                self._settle(belonging)
        except OSError:
            return  # it has ended; its group is read on for the last counters

    def _read_memory(self, group: Hierarchy, now: float) -> list[Reading]:
        names = V1 if group.version == 1 else V2
        if now >= self._limits_due:
            self._limits = {folder: self._limit(f"{folder}/{names.limit}") for folder in group.folders}
            self._limits_due = now + LIMITS_EVERY_S
        limited = [folder for folder in group.folders if self._limits.get(folder) is not None]
        uses = [self._use(folder, names) for folder in limited or group.folders[:1]]
        binding = min(uses, key=lambda use: use.headroom)
        readings: list[Reading] = []
        if self._to_announce:
            self._to_announce = False
            readings.append(_found(group, binding, now))
        return [
            *readings,
            Sample("cgroup.memory_limit_bytes", binding.limit, now, NO_LIMIT if binding.limit is None else ""),
            Sample("cgroup.memory_usage_bytes", binding.usage, now),
            Sample("cgroup.memory_working_bytes", binding.working, now),
            _number("cgroup.memory_peak_bytes", f"{binding.folder}/{names.peak}", now),
            self._high(group, now),
            _count("cgroup.oom_kill_count", f"{group.folders[0]}/{names.kills}", "oom_kill", now),
            _limit_hits(group, binding, now),
            _swap(group, binding, now),
        ]

    def _use(self, folder: str, names: Names) -> Use:
        usage = int(read(f"{folder}/{names.usage}"))
        stat = numbers(read(f"{folder}/memory.stat"))
        cache = sum(stat.get(key, 0) for key in names.cache)
        return Use(folder, self._limits.get(folder), usage, max(0, usage - cache), stat)

    def _limit(self, path: str) -> int | None:
        if OWN_GROUP in path:
            return None  # Holdfast's own last line: it follows what is free, and is nobody's container
        try:
            limit = int(read(path))
        except (OSError, ValueError):  # the root group has none; v2 writes `max`
            return None
        too_high = limit >= NO_LIMIT_FROM or (self._machine_bytes is not None and limit > self._machine_bytes)
        return None if too_high else limit

    def _high(self, group: Hierarchy, now: float) -> Sample:
        if group.version == 1:
            return Sample("cgroup.memory_high_bytes", None, now, "version 1 has none")
        limits = [limit for f in group.folders if (limit := self._limit(f"{f}/memory.high")) is not None]
        return Sample("cgroup.memory_high_bytes", min(limits, default=None), now, "" if limits else NO_LIMIT)

    def _read_pids(self, now: float) -> list[Reading]:
        if self._pids is None:
            return list(missing(PIDS_SIGNALS, now, "no control group counts processes here"))
        tightest: tuple[float, int, int | None] | None = None
        refused = []
        try:
            for folder in self._pids.folders:
                count, limit = int(read(f"{folder}/pids.current")), _pids_limit(folder)
                headroom = float("inf") if limit is None else limit - count
                if tightest is None or headroom < tightest[0]:
                    tightest = (headroom, count, limit)
                refused.append(_refused(folder))
        except OSError as error:
            return list(missing(PIDS_SIGNALS, now, _gone(error)))
        assert tightest is not None  # a hierarchy has at least one folder
        known = [count for count in refused if count is not None]
        return [
            Sample("cgroup.pids_limit_count", tightest[2], now, NO_LIMIT if tightest[2] is None else ""),
            Sample("cgroup.pids_count", tightest[1], now),
            Sample("cgroup.pids_refused_count", max(known, default=None), now, "" if known else "not counted"),
        ]


def _found(group: Hierarchy, binding: Use, now: float) -> Event:
    about = {
        "version": group.version,
        "path": group.path,
        "limit_bytes": binding.limit,
        "limit_path": None if binding.limit is None else binding.folder,
    }
    return Event("cgroup.found", now, about)


def _number(name: str, path: str, now: float) -> Sample:
    try:
        return Sample(name, int(read(path)), now)
    except (OSError, ValueError) as error:
        return Sample(name, None, now, why(error) if isinstance(error, OSError) else "not a number")


def _limit_hits(group: Hierarchy, binding: Use, now: float) -> Sample:
    """v2: how often an allocation failed at the limit that binds. v1 counts every touch of it, reclaim included."""
    name = "cgroup.limit_hit_count"
    if group.version == 2:
        return _count(name, f"{binding.folder}/memory.events", "oom", now)
    try:
        return Sample(name, int(read(f"{binding.folder}/memory.failcnt")), now)
    except OSError as error:
        return Sample(name, None, now, _gone(error))


def _swap(group: Hierarchy, binding: Use, now: float) -> Sample:
    name = "cgroup.swap_usage_bytes"
    if group.version == 1:
        value = binding.stat.get(V1.swap)
        return Sample(name, value, now, "" if value is not None else "swap is not accounted")
    try:
        return Sample(name, int(read(f"{binding.folder}/memory.swap.current")), now)
    except OSError as error:
        return Sample(name, None, now, _gone(error))


def _count(name: str, path: str, key: str, now: float) -> Sample:
    try:
        value = numbers(read(path)).get(key)
    except OSError as error:
        return Sample(name, None, now, _gone(error))
    return Sample(name, value, now, "" if value is not None else f"this kernel does not count {key}")


def _pids_limit(folder: str) -> int | None:
    try:
        return int(read(f"{folder}/pids.max"))
    except (OSError, ValueError):
        return None


def _refused(folder: str) -> int | None:
    try:
        return numbers(read(f"{folder}/pids.events")).get("max")
    except OSError:
        return None


def _gone(error: OSError) -> str:
    return "the group is gone" if error.errno == errno.ENODEV else why(error)


def _memory_total(scope: Scope) -> int | None:
    try:
        return numbers(read(under(scope.root, "/proc/meminfo"))).get("MemTotal")
    except OSError:
        return None
