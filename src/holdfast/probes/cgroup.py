"""The control group of the job: the limit that binds, how near it is, and what the kernel did about it."""

from __future__ import annotations

import errno
from dataclasses import dataclass

from holdfast.inside.headroom import GROUP_FILES, V1_SWAP, GroupFiles, field, host_memory, limit_bytes, working_bytes
from holdfast.probes.cgroup_paths import Hierarchy, hierarchy_of, membership
from holdfast.probes.contract import Missing, Reading, Scope
from holdfast.probes.kernel_files import missing, numbers, read, under, why
from holdfast.vocabulary import JOB_GROUP_PREFIX, Event, Sample

LIMITS_EVERY_S = 5.0  # limits change rarely, usage is read every time
NO_LIMIT = "no limit"

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
class Limits:
    """Of one group: where the kernel kills, from where on it slows the job down, and the tighter one of them."""

    hard: int | None = None
    high: int | None = None
    binding: int | None = None


@dataclass(frozen=True, slots=True)
class Use:
    folder: str
    limits: Limits
    usage: int
    working: int
    stat: bytes

    @property
    def headroom(self) -> float:
        return float("inf") if self.limits.binding is None else self.limits.binding - self.working


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
        self._limits: dict[str, Limits] = {}
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
            return  # the process is exiting: version 1 shows it in the root group then
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
            return  # it has ended; its group is still read, for the last counters

    def _read_memory(self, group: Hierarchy, now: float) -> list[Reading]:
        files = GROUP_FILES[group.version]
        if now >= self._limits_due:
            self._limits = {folder: self._limits_of(folder, files) for folder in group.folders}
            self._limits_due = now + LIMITS_EVERY_S
        limited = [folder for folder in group.folders if self._limits[folder].binding is not None]
        uses = [self._use(folder, files) for folder in limited or group.folders[:1]]
        binding = min(uses, key=lambda use: use.headroom)
        readings: list[Reading] = []
        if self._to_announce:
            self._to_announce = False
            readings.append(_found(group, binding, now))
        return [
            *readings,
            _limit("cgroup.memory_limit_bytes", binding.limits.hard, now),
            Sample("cgroup.memory_usage_bytes", binding.usage, now),
            Sample("cgroup.memory_working_bytes", binding.working, now),
            _number("cgroup.memory_peak_bytes", f"{binding.folder}/{files.peak}", now),
            _limit("cgroup.memory_high_bytes", binding.limits.high, now)
            if files.throttled_from
            else Sample("cgroup.memory_high_bytes", None, now, "version 1 has none"),
            _count("cgroup.oom_kill_count", f"{group.folders[0]}/{files.kills}", "oom_kill", now),
            _limit_hits(group, binding, now),
            _swap(files, binding, now),
        ]

    def _use(self, folder: str, files: GroupFiles) -> Use:
        usage, stat = int(read(f"{folder}/{files.usage}")), read(f"{folder}/memory.stat")
        return Use(folder, self._limits[folder], usage, working_bytes(usage, stat, files), stat)

    def _limits_of(self, folder: str, files: GroupFiles) -> Limits:
        if f"/{JOB_GROUP_PREFIX}" in folder:
            return Limits()  # Holdfast's own: it follows what is free and is not the container's
        hard = _content(f"{folder}/{files.limit}")
        high = _content(f"{folder}/{files.throttled_from}") if files.throttled_from else b""
        return Limits(
            *(limit_bytes(*one, machine_bytes=self._machine_bytes) for one in ((hard,), (high,), (hard, high)))
        )

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
        "limit_bytes": binding.limits.hard,
        "limit_path": None if binding.limits.hard is None else binding.folder,
    }
    return Event("cgroup.found", now, about)


def _content(path: str) -> bytes:
    """Empty where there is none: the root group has no limits."""
    try:
        return read(path)
    except OSError:
        return b""


def _limit(name: str, value: int | None, now: float) -> Sample:
    return Sample(name, value, now, NO_LIMIT if value is None else "")


def _number(name: str, path: str, now: float) -> Sample:
    try:
        return Sample(name, int(read(path)), now)
    except (OSError, ValueError) as error:
        return Sample(name, None, now, why(error) if isinstance(error, OSError) else "not a number")


def _limit_hits(group: Hierarchy, binding: Use, now: float) -> Sample:
    """Version 2: allocations that failed at the binding limit. Version 1 counts each time it was reached, reclaim included."""
    name = "cgroup.limit_hit_count"
    if group.version == 2:
        return _count(name, f"{binding.folder}/memory.events", "oom", now)
    try:
        return Sample(name, int(read(f"{binding.folder}/memory.failcnt")), now)
    except OSError as error:
        return Sample(name, None, now, _gone(error))


def _swap(files: GroupFiles, binding: Use, now: float) -> Sample:
    name = "cgroup.swap_usage_bytes"
    if not files.swap_usage:
        value = field(binding.stat, V1_SWAP)
        return Sample(name, value, now, "" if value is not None else "swap is not accounted")
    try:
        return Sample(name, int(read(f"{binding.folder}/{files.swap_usage}")), now)
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
        return host_memory(read(under(scope.root, "/proc/meminfo"))).total
    except OSError:
        return None
