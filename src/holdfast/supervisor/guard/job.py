"""The job's processes as the guard sees them: what they hold, and which of them grows."""

from __future__ import annotations

import contextlib
import os
import time
from collections import deque
from pathlib import Path

from holdfast.probes.contract import Missing, Scope
from holdfast.probes.job_memory import JobMemory
from holdfast.probes.tree import Stat, Tree, stat_of
from holdfast.supervisor.guard.new_highs import NewHighs

WEIGH_EVERY_S = 1.0  # what the job holds exactly; the kernel walks all pages for it, 2 ms a GiB
SIZES_EVERY_S, SIZES_KEPT = 0.5, 60  # resident sizes by process: half a minute
SPANS_S = (3.0, 30.0)  # for fast and for slow leaks
GREW_BYTES, GREW_RATIO = 8 << 20, 0.6  # least growth of a leaking worker in a span, and its share of the job's
SHARE_OF_TIME = 0.1  # at most spent on looking at the processes


class Job:
    def __init__(self, script_pid: int, watcher_pid: int) -> None:
        self.script_pid = script_pid
        self._tree: Tree | None = None
        with contextlib.suppress(Missing, OSError):
            self._tree = Tree(Scope(script_pid, watcher_pid, ()))
        self._members: dict[int, Stat] = {}
        self._sizes: deque[tuple[float, dict[int, int]]] = deque(maxlen=SIZES_KEPT)
        self._took_s = 0.0
        self.trainers: set[int] = set()
        self.rss = 0.0
        self._memory = JobMemory()
        self._weighed_at = 0.0
        self.climb = NewHighs()

    def look(self, now: float, job_time: float, count: bool) -> None:
        """`count`: there is no group of the job's own, so the sizes of its processes are added up."""
        if self._tree is None:
            return
        began = time.monotonic()
        self._members = dict(self._tree.refresh())
        self._took_s = time.monotonic() - began
        if not self._sizes or now - self._sizes[-1][0] >= SIZES_EVERY_S:
            self._sizes.append((now, {pid: stat.rss_bytes for pid, stat in self._members.items()}))
        if count:
            self.rss = float(sum(stat.rss_bytes for stat in self._members.values()))
            self.climb.add(job_time, self.rss)

    def due_s(self, wanted_s: float) -> float:
        """Seconds until the next look; many processes take longer to read."""
        return max(wanted_s, self._took_s / SHARE_OF_TIME)

    def own_bytes(self, now: float, weigh: bool) -> float:
        """What would be free without the job: shared pages counted once, program code not at all."""
        due = weigh and now - self._weighed_at > WEIGH_EVERY_S
        if due and self._memory.weigh(self._members, self.rss):
            self._weighed_at = now
        return self._memory.held_bytes(self.rss)

    def forget(self) -> None:
        """After a process was stopped: earlier sizes say nothing about the rest."""
        self.climb = NewHighs()
        self._sizes.clear()

    def members(self) -> list[Stat]:
        """Those alive, read now."""
        found = self._tree.refresh().values() if self._tree is not None else ()
        return [stat for stat in found if stat.state not in "ZX"]

    def states(self) -> list[tuple[int, str]]:
        return [(stat.pid, stat.state) for stat in self.members()]

    def pids(self) -> list[int]:
        return [stat.pid for stat in self.members()]

    def name(self, pid: int) -> str:
        stat = self._members.get(pid)
        return f"{stat.name} (pid {pid})" if stat is not None else f"pid {pid}"

    def largest(self) -> int:
        return max(self._members, key=lambda pid: self._members[pid].rss_bytes, default=0)

    def leaking_worker(self, now: float) -> Stat | None:
        """The process with most of the growth, if it is a helper of the training process and can be stopped alone.

        A helper runs the same program as its parent (a loader's worker is forked or spawned), unlike what a shell script
        starts.
        """
        self._members = {stat.pid: stat for stat in self.members()}
        for span_s in SPANS_S:
            grown = self._grown(now - span_s)
            worst = max(grown, key=lambda pid: grown[pid], default=0)
            all_grown = sum(amount for amount in grown.values() if amount > 0)
            if worst and grown[worst] >= max(GREW_BYTES, GREW_RATIO * all_grown):
                return self._members[worst] if self._is_helper(worst) else None
        return None

    def _is_helper(self, pid: int) -> bool:
        stat = self._members[pid]
        if pid == self.script_pid or pid in self.trainers or stat.parent not in self._members:
            return False
        return _program(pid) == _program(stat.parent) and all(s.parent != pid for s in self._members.values())

    def _grown(self, since: float) -> dict[int, int]:
        """By process, since then or since it was first seen; a forked child starts with its parent's size."""
        grown = {}
        for pid, stat in self._members.items():
            sizes = [size[pid] for at, size in self._sizes if at >= since and pid in size]
            parent = self._members.get(stat.parent)
            before = sizes[0] if sizes else parent.rss_bytes if parent is not None else 0
            grown[pid] = stat.rss_bytes - before
        return grown

    def still_there(self, stat: Stat) -> bool:
        now = stat_of("/proc", stat.pid)
        return now is not None and now.started == stat.started and now.parent == stat.parent


def _program(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return f"?{pid}"


def one_of_several_ranks() -> bool:
    """Started by torchrun, MPI or Slurm as one of many: the others would wait for one that is paused."""
    for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"):
        count = os.environ.get(name, "")
        if count.isdigit() and int(count) > 1:
            return True
    return False
