"""What is more costly to read of each process: open files, bytes read and written, and the memory that is its own.

Separate from `processes`, because reading smaps and fd can wait for a lock that a thrashing process holds.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

from holdfast.probes.contract import Reading, Scope
from holdfast.probes.job_memory import JobMemory
from holdfast.probes.kernel_files import numbers, read, why
from holdfast.probes.tree import Tree
from holdfast.vocabulary import Sample

PROCESSES_A_READ = 24  # at about 60 µs each
AGAIN_AFTER_S = 1.5  # before the same process is read again
WEIGH_EVERY_S = 10.0  # what the job holds exactly; in between it follows the resident sizes
WEIGH_COST_RATIO = 0.001  # of the time, at most


@dataclass(slots=True)
class Detail:
    at: float
    open_files: int | None = None
    open_files_limit: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    moved_bytes: int | None = None  # through any descriptor: files in the page cache, pipes, terminals
    reason: str = ""


class ProcessDetails:
    name = "process_details"
    every_s = 1.0  # what the job holds is weighed against its budget
    signals = (
        "job.open_files_count",
        "job.open_files_limit_count",
        "job.read_bytes",
        "job.written_bytes",
        "job.held_bytes",
        "job.moved_bytes",
    )

    def __init__(self, scope: Scope) -> None:
        self._tree = Tree(scope)
        self._details: dict[int, Detail] = {}
        self._parents: dict[int, int] = {}
        self._kept = [0, 0, 0]
        self._highest = [0, 0, 0]
        self._memory = JobMemory(self._tree.proc)
        self._weigh_due = float("-inf")
        self._weighed = False

    def read(self, now: float) -> list[Reading]:
        members = self._tree.refresh()
        for pid in self._details.keys() - members.keys():
            self._keep(self._details.pop(pid), self._parents.get(pid, 0) in members)
        self._parents = {pid: stat.parent for pid, stat in members.items()}
        alive = [pid for pid, stat in members.items() if stat.state not in "ZX"]
        oldest_first = sorted(alive, key=lambda pid: self._details[pid].at if pid in self._details else float("-inf"))
        for pid in oldest_first[:PROCESSES_A_READ]:
            known = self._details.get(pid)
            if known is None or now - known.at >= AGAIN_AFTER_S:
                self._details[pid] = self._look(pid, now)
        rss_bytes = sum(members[pid].rss_bytes for pid in alive)
        return [*self._open_files(now), *self._io(now), self._held(alive, rss_bytes, now)]

    def _keep(self, detail: Detail, parent_lives: bool) -> None:
        """A parent that waits for a child takes over its counts; otherwise they are kept here."""
        if not parent_lives:
            self._kept[0] += detail.read_bytes or 0
            self._kept[1] += detail.written_bytes or 0
            self._kept[2] += detail.moved_bytes or 0

    def _look(self, pid: int, now: float) -> Detail:
        detail, folder = Detail(now), f"{self._tree.proc}/{pid}"
        try:
            # From Linux 6.2 on the folder's size is the number of descriptors.
            detail.open_files = os.stat(f"{folder}/fd").st_size or len(os.listdir(f"{folder}/fd"))  # noqa: PTH208
            detail.open_files_limit = _soft_limit(read(f"{folder}/limits"))
        except OSError as error:
            detail.reason = why(error)
        try:
            io = numbers(read(f"{folder}/io"))
            detail.read_bytes, detail.written_bytes = io.get("read_bytes"), io.get("write_bytes")
            detail.moved_bytes = io.get("rchar", 0) + io.get("wchar", 0)
        except OSError as error:
            detail.reason = why(error)
        return detail

    def _open_files(self, now: float) -> list[Sample]:
        known = [d for d in self._details.values() if d.open_files is not None and d.open_files_limit]
        if not known:
            return [Sample(name, None, now, self._reason()) for name in self.signals[:2]]
        fullest = max(known, key=lambda d: (d.open_files or 0) / (d.open_files_limit or 1))
        return [
            Sample("job.open_files_count", fullest.open_files, now),
            Sample("job.open_files_limit_count", fullest.open_files_limit, now),
        ]

    def _io(self, now: float) -> list[Sample]:
        names = ("job.read_bytes", "job.written_bytes", "job.moved_bytes")
        known = [d for d in self._details.values() if d.read_bytes is not None]
        if not known and self._highest == [0, 0, 0]:
            return [Sample(name, None, now, self._reason()) for name in names]
        sums = (
            sum(d.read_bytes or 0 for d in known),
            sum(d.written_bytes or 0 for d in known),
            sum(d.moved_bytes or 0 for d in known),
        )
        totals = [kept + living for kept, living in zip(self._kept, sums, strict=True)]
        self._highest = [max(before, total) for before, total in zip(self._highest, totals, strict=True)]
        return [Sample(name, value, now) for name, value in zip(names, self._highest, strict=True)]

    def _held(self, pids: list[int], rss_bytes: float, now: float) -> Sample:
        """Weighed rarely, and the more rarely the longer it takes: at most a thousandth of the time."""
        if now >= self._weigh_due:
            self._weighed = self._memory.weigh(pids, rss_bytes) or self._weighed
            self._weigh_due = now + max(WEIGH_EVERY_S, self._memory.took_s / WEIGH_COST_RATIO)
        if not self._weighed:
            return Sample("job.held_bytes", None, now, "no process could be read")
        return Sample("job.held_bytes", self._memory.held_bytes(rss_bytes), now)

    def _reason(self) -> str:
        return next((d.reason for d in self._details.values() if d.reason), "no process to ask")


def _soft_limit(limits: bytes) -> int | None:
    for line in limits.splitlines():
        if line.startswith(b"Max open files"):
            soft = line.split()[3]
            return int(soft) if soft.isdigit() else None
    return None
