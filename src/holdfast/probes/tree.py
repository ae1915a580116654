"""Which processes belong to the job: the descendants of the watcher, found without reading every process each time."""

from __future__ import annotations

import os
from dataclasses import dataclass

from holdfast.probes.contract import Missing, Scope
from holdfast.probes.kernel_files import read, under

LOOK_AT_ALL_EVERY = 60  # refreshes; so that a reused process id is noticed
DEEPEST = 64  # ancestors of a process
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Stat:
    """One line of /proc/<pid>/stat."""

    pid: int
    name: str
    state: str
    parent: int
    cpu_s: float
    children_cpu_s: float  # of children that ended and were waited for
    threads: int
    started: int
    rss_bytes: int


def stat_of(proc: str, pid: int) -> Stat | None:
    """None where there is no such process."""
    try:
        data = read(f"{proc}/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError):
        return None
    opening, closing = data.find(b"("), data.rfind(b")")
    fields = data[closing + 2 :].split(None, 22)
    if opening < 0 or len(fields) < 22:
        return None
    return Stat(
        pid=pid,
        name=data[opening + 1 : closing].decode("utf-8", "replace"),
        state=chr(fields[0][0]),
        parent=int(fields[1]),
        cpu_s=(int(fields[11]) + int(fields[12])) * TICK_S,
        children_cpu_s=(int(fields[13]) + int(fields[14])) * TICK_S,
        threads=int(fields[17]),
        started=int(fields[19]),
        rss_bytes=int(fields[21]) * PAGE_BYTES,
    )


class Tree:
    """A process that is not the job's is not read again; one of the job's stays so until it ends."""

    def __init__(self, scope: Scope) -> None:
        self.proc = under(scope.root, "/proc")
        self._script, self._watcher = scope.script_pid, scope.watcher_pid
        self._members: dict[int, Stat] = {}
        self._others: set[int] = set()
        self._refreshes = 0
        if not os.path.isdir(self.proc) or not any(name.isdigit() for name in os.listdir(self.proc)):  # noqa: PTH112, PTH208
            raise Missing(f"no processes to see in {self.proc}")

    def refresh(self) -> dict[int, Stat]:
        pids = {int(name) for name in os.listdir(self.proc) if name.isdigit()}  # noqa: PTH208
        if self._refreshes % LOOK_AT_ALL_EVERY == 0:
            self._others = set()
        self._refreshes += 1
        self._others &= pids
        members = {}
        for pid, before in self._members.items():
            stat = stat_of(self.proc, pid) if pid in pids else None
            if stat is not None and stat.started == before.started:
                members[pid] = stat
        self._members = members
        self._sort_out(pids)
        return self._members

    def _sort_out(self, pids: set[int]) -> None:
        """Sorts processes not seen before into the job's and others; one whose parent is not known yet waits for the next refresh."""
        unplaced = []
        for pid in pids - self._others - self._members.keys():
            stat = stat_of(self.proc, pid) if pid != self._watcher else None
            if stat is not None:
                unplaced.append(stat)
        unplaced.sort(key=lambda stat: stat.started)
        found = True
        while found:
            found = False
            for stat in unplaced:
                if stat.pid not in self._members and self._is_ours(stat):
                    self._members[stat.pid] = stat
                    found = True
        self._others.update(s.pid for s in unplaced if s.pid not in self._members and s.parent in pids | {0})

    def _is_ours(self, stat: Stat) -> bool:
        return stat.parent == self._watcher or stat.parent in self._members or stat.pid == self._script


def belongs(scope: Scope, pid: int) -> bool:
    """Whether a process is of the job, by going up from it."""
    proc = under(scope.root, "/proc")
    for _ in range(DEEPEST):
        if pid in (scope.script_pid, scope.watcher_pid):
            return True
        stat = stat_of(proc, pid)
        if stat is None or stat.parent <= 1:
            return False
        pid = stat.parent
    return False
