"""The job's processes: their resident sizes, processor time and states, and which appeared or ended."""

from __future__ import annotations

from collections import Counter

from holdfast.masking import masked_command
from holdfast.probes.contract import Reading, Scope
from holdfast.probes.kernel_files import read
from holdfast.probes.tree import Stat, Tree
from holdfast.vocabulary import Event, Sample

EVENTS_A_RUN = 500  # of processes that appear or end; a script that forks for every batch must not fill the journal
COMMAND_CHARACTERS = 200


class Processes:
    name = "processes"
    every_s = 0.5
    signals = (
        "job.rss_bytes",
        "job.largest_rss_bytes",
        "job.cpu_s",
        "job.processes_count",
        "job.threads_count",
        "job.blocked_count",
        "job.stopped_count",
        "job.zombie_count",
    )

    def __init__(self, scope: Scope) -> None:
        self._tree = Tree(scope)
        self._before: dict[int, Stat] = {}
        self._cpu_s = CpuTime()
        self._events_left = EVENTS_A_RUN

    def read(self, now: float) -> list[Reading]:
        members = dict(self._tree.refresh())
        gone = [stat for pid, stat in self._before.items() if not _same(stat, members.get(pid))]
        came = [stat for pid, stat in members.items() if not _same(stat, self._before.get(pid))]
        cpu_s = self._cpu_s.update(self._before, members, gone)
        self._before = members
        states = Counter(stat.state for stat in members.values())
        sizes = [stat.rss_bytes for stat in members.values()]
        values = (
            sum(sizes),
            max(sizes, default=0),
            cpu_s,
            len(members),
            sum(stat.threads for stat in members.values()),
            states["D"],
            states["T"] + states["t"],
            states["Z"],
        )
        samples = [Sample(name, value, now) for name, value in zip(self.signals, values, strict=True)]
        return [*samples, *self._events(came, gone, now)]

    def _events(self, came: list[Stat], gone: list[Stat], now: float) -> list[Event]:
        if self._events_left <= 0:
            return []
        events = [
            Event("process.gone", now, {"pid": stat.pid, "name": stat.name, "rss_bytes": stat.rss_bytes})
            for stat in gone[: self._events_left]
        ]
        for stat in came[: self._events_left - len(events)]:
            about = {"pid": stat.pid, "name": stat.name, "parent": stat.parent, "command": self._command(stat)}
            events.append(Event("process.appeared", now, about))
        self._events_left -= len(gone) + len(came)
        if self._events_left <= 0:
            events.append(Event("process.unlisted", now, {"after": EVENTS_A_RUN}))
        return events

    def _command(self, stat: Stat) -> str:
        try:
            words = read(f"{self._tree.proc}/{stat.pid}/cmdline")
        except OSError:
            return stat.name
        line = " ".join(masked_command(words.decode("utf-8", "replace").split("\0")))
        return line.strip()[:COMMAND_CHARACTERS] or stat.name


class CpuTime:
    """Processor time of every process the job has had; never falls.

    The time of an ended process is added to its parent's once that has waited for it. Where no process of the job did
    (the parent ignores SIGCHLD, or the watcher reaped it), the last reading is kept here.
    """

    def __init__(self) -> None:
        self._kept = 0.0
        self._highest = 0.0

    def update(self, before: dict[int, Stat], members: dict[int, Stat], gone: list[Stat]) -> float:
        lost: dict[int, float] = {}
        for stat in gone:
            heir = _heir(stat, before, members)
            lost[heir] = lost.get(heir, 0.0) + stat.cpu_s + stat.children_cpu_s
        for heir, amount in lost.items():
            inherited = 0.0
            if heir in members and heir in before:
                inherited = members[heir].children_cpu_s - before[heir].children_cpu_s
            self._kept += max(0.0, amount - inherited)
        living = sum(stat.cpu_s + stat.children_cpu_s for stat in members.values())
        self._highest = max(self._highest, self._kept + living)
        return self._highest


def _heir(stat: Stat, before: dict[int, Stat], members: dict[int, Stat]) -> int:
    """The nearest ancestor that is still alive in the job; 0 for none."""
    seen = set()
    parent = stat.parent
    while parent not in members and parent in before and parent not in seen:
        seen.add(parent)
        parent = before[parent].parent
    return parent if parent in members else 0


def _same(stat: Stat, other: Stat | None) -> bool:
    return other is not None and stat.started == other.started
