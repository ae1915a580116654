"""What costs more to ask of each process: open files, bytes read and written, and its fair share of shared memory.

Apart from `processes`, because smaps and fd can wait for a lock that a thrashing process holds.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass

from holdfast.probes.contract import Reading, Scope
from holdfast.probes.kernel_files import numbers, read, why
from holdfast.probes.tree import Tree
from holdfast.vocabulary import Sample

PROCESSES_A_READ = 24  # at about 60 µs each
AGAIN_AFTER_S = 1.5
PSS_PROCESSES = 8
PSS_EVERY_S = 10.0
PSS_SLOW_S = 0.25  # walking the page tables of 100 GiB takes about that, with the process's memory map locked
PSS_COST_RATIO = 0.001


@dataclass(slots=True)
class Detail:
    at: float
    open_files: int | None = None
    open_files_limit: int | None = None
    read_bytes: int | None = None
    written_bytes: int | None = None
    reason: str = ""


class ProcessDetails:
    name = "process_details"
    every_s = 2.0
    signals = (
        "job.open_files_count",
        "job.open_files_limit_count",
        "job.read_bytes",
        "job.written_bytes",
        "job.pss_bytes",
    )

    def __init__(self, scope: Scope) -> None:
        self._tree = Tree(scope)
        self._details: dict[int, Detail] = {}
        self._parents: dict[int, int] = {}
        self._kept = [0, 0]
        self._highest = [0, 0]
        self._pss_due = float("-inf")
        self._pss_reason = ""

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
        return [*self._open_files(now), *self._io(now), *self._pss(alive, now)]

    def _keep(self, detail: Detail, parent_lives: bool) -> None:
        """A parent that waits for a child takes over what it read and wrote; without one it is kept here."""
        if not parent_lives:
            self._kept[0] += detail.read_bytes or 0
            self._kept[1] += detail.written_bytes or 0

    def _look(self, pid: int, now: float) -> Detail:
        detail, folder = Detail(now), f"{self._tree.proc}/{pid}"
        try:
            # Linux 6.2 and later tell the number of descriptors as the folder's size.
            detail.open_files = os.stat(f"{folder}/fd").st_size or len(os.listdir(f"{folder}/fd"))  # noqa: PTH208
            detail.open_files_limit = _soft_limit(read(f"{folder}/limits"))
        except OSError as error:
            detail.reason = why(error)
        try:
            io = numbers(read(f"{folder}/io"))
            detail.read_bytes, detail.written_bytes = io.get("read_bytes"), io.get("write_bytes")
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
        known = [d for d in self._details.values() if d.read_bytes is not None]
        if not known and self._highest == [0, 0]:
            return [Sample(name, None, now, self._reason()) for name in self.signals[2:4]]
        read_now = self._kept[0] + sum(d.read_bytes or 0 for d in known)
        written_now = self._kept[1] + sum(d.written_bytes or 0 for d in known)
        self._highest = [max(self._highest[0], read_now), max(self._highest[1], written_now)]
        return [
            Sample("job.read_bytes", self._highest[0], now),
            Sample("job.written_bytes", self._highest[1], now),
        ]

    def _pss(self, pids: list[int], now: float) -> list[Sample]:
        """Rarely, and the rarer the longer it takes: at most a thousandth of the time."""
        if now < self._pss_due:
            return []
        self._pss_due = now + PSS_EVERY_S
        if not 0 < len(pids) <= PSS_PROCESSES:
            return [Sample("job.pss_bytes", None, now, f"not asked of {len(pids)} processes")]
        began, total = time.monotonic(), 0
        for pid in pids:
            try:
                total += numbers(read(f"{self._tree.proc}/{pid}/smaps_rollup")).get("Pss", 0)
            except OSError as error:
                return [Sample("job.pss_bytes", None, now, why(error))]
            if time.monotonic() - began > PSS_SLOW_S:
                self._pss_due = float("inf")
                return [Sample("job.pss_bytes", None, now, f"given up: it took over {PSS_SLOW_S} s")]
        self._pss_due = now + max(PSS_EVERY_S, (time.monotonic() - began) / PSS_COST_RATIO)
        return [Sample("job.pss_bytes", total, now)]

    def _reason(self) -> str:
        return next((d.reason for d in self._details.values() if d.reason), "no process to ask")


def _soft_limit(limits: bytes) -> int | None:
    for line in limits.splitlines():
        if line.startswith(b"Max open files"):
            soft = line.split()[3]
            return int(soft) if soft.isdigit() else None
    return None
