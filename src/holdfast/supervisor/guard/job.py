"""The job as the guard sees it: its processes, what they hold, which of them grows."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from holdfast.probes.contract import Missing, Scope
from holdfast.probes.kernel_files import read
from holdfast.probes.tree import Stat, Tree, stat_of
from holdfast.supervisor.guard.course import Course

GREW_BYTES = 24 << 20
WEIGH_EVERY_S = 1.0  # the kernel walks all pages for it, 2 ms a GiB


class Job:
    def __init__(self, script_pid: int, watcher_pid: int, folder: str | None = None) -> None:
        self.script_pid = script_pid
        self._tree: Tree | None = None
        with contextlib.suppress(Missing, OSError):
            self._tree = Tree(Scope(script_pid, watcher_pid, ()))
        self._folder = folder
        self._members: dict[int, Stat] = {}
        self._before: dict[int, Stat] = {}
        self._before_at = 0.0
        self.trainers: set[int] = set()
        self.rss = 0.0
        self._weighed_at = 0.0
        self._weighed = (0.0, 0.0)  # what it holds by itself, and the sum of sizes at that time
        self.course = Course()

    def look(self, now: float, job_time: float, count: bool) -> None:
        """`count`: nothing else tells what the job holds, so its processes are summed up."""
        if self._tree is None:
            return
        if now - self._before_at > 2.0:
            self._before, self._before_at = self._members, now
        self._members = dict(self._tree.refresh())
        if count:
            self.rss = float(sum(stat.rss_bytes for stat in self._members.values()))
            self.course.add(job_time, self.rss)

    def own_bytes(self, now: float, weigh: bool) -> float:
        """What the job would give back: pages that its processes share counted once, program code not at all.

        Between two weighings it grows as the sum of sizes does.
        """
        if weigh and now - self._weighed_at > WEIGH_EVERY_S:
            held = sum(_anonymous(pid) for pid in self._members)
            if held:
                self._weighed_at, self._weighed = now, (held, self.rss)
        held, at_rss = self._weighed
        return held + self.rss - at_rss

    def forget(self) -> None:
        """After one of them was stopped: what was read before says nothing about the rest."""
        self.course = Course()
        self._before = {}

    def members(self) -> list[Stat]:
        """Those that live, fresh from the kernel."""
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

    def leaking_worker(self) -> Stat | None:
        """The process that makes most of the growth, where it is a helper of the one that trains and can go alone.

        A helper runs the same program as its parent (a loader's worker is forked or spawned); what a shell script
        starts does not.
        """
        grown = {pid: self._grown(stat) for pid, stat in self._members.items()}
        all_grown = sum(amount for amount in grown.values() if amount > 0)
        worst = max(grown, key=lambda pid: grown[pid], default=0)
        if not worst or grown[worst] < max(GREW_BYTES, 0.5 * all_grown):
            return None
        stat = self._members[worst]
        if worst == self.script_pid or worst in self.trainers or stat.parent not in self._members:
            return None
        if _program(worst) != _program(stat.parent) or any(s.parent == worst for s in self._members.values()):
            return None
        return stat

    def _grown(self, stat: Stat) -> int:
        before = self._before.get(stat.pid) or self._members.get(stat.parent)  # a forked child starts as its parent
        return stat.rss_bytes - (before.rss_bytes if before is not None else 0)

    def still_there(self, stat: Stat) -> bool:
        now = stat_of("/proc", stat.pid)
        return now is not None and now.started == stat.started and now.parent == stat.parent


def _anonymous(pid: int) -> float:
    try:
        lines = read(f"/proc/{pid}/smaps_rollup").splitlines()
    except OSError:
        return 0.0
    return float(sum(int(line.split()[1]) * 1024 for line in lines if line.startswith((b"Pss_Anon:", b"Pss_Shmem:"))))


def _program(pid: int) -> str:
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return f"?{pid}"


def one_of_several_ranks() -> bool:
    """Started by torchrun, MPI or Slurm as one of many: the others would wait for a held one."""
    for name in ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"):
        count = os.environ.get(name, "")
        if count.isdigit() and int(count) > 1:
            return True
    return False
