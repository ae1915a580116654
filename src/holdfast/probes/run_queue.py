"""How many of the job's threads wait for a processor, and how many processors it may use."""

from __future__ import annotations

import os

from holdfast.probes.cgroup_paths import hierarchy_of, membership
from holdfast.probes.contract import Missing, Reading, Scope
from holdfast.probes.kernel_files import read, why
from holdfast.probes.tree import Tree
from holdfast.vocabulary import Sample

THREADS_A_READ = 600  # at about 4 µs each; the rest is extrapolated from these
CORES_EVERY_S = 30.0


class RunQueue:
    name = "run_queue"
    every_s = 2.0
    signals = ("job.cpu_waiting_count", "job.cpu_wanting_count", "job.cores_count")

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._tree = Tree(scope)
        self._before: dict[int, tuple[int, int]] = {}
        self._before_at = 0.0
        self._cores: float | None = None
        self._cores_due = float("-inf")
        try:
            read(f"{self._tree.proc}/{scope.script_pid}/schedstat")
        except OSError as error:
            raise Missing(f"this kernel does not tell how long a thread waits ({why(error)})") from None

    def read(self, now: float) -> list[Reading]:
        threads = self._threads()
        seconds = now - self._before_at
        known = [(tid, ran, waited) for tid, (ran, waited) in threads.items() if tid in self._before]
        samples: list[Reading] = []
        if known and seconds > 0:
            ran_s = sum(max(0, ran - self._before[tid][0]) for tid, ran, _ in known) / 1e9
            waited_s = sum(max(0, waited - self._before[tid][1]) for tid, _, waited in known) / 1e9
            share = max(1.0, self._count / max(1, len(threads)))
            samples = [
                Sample("job.cpu_waiting_count", waited_s / seconds * share, now),
                Sample("job.cpu_wanting_count", (waited_s + ran_s) / seconds * share, now),
            ]
        self._before, self._before_at = threads, now
        if now >= self._cores_due:
            self._cores_due = now + CORES_EVERY_S
            self._cores = usable_cores(self._scope)
        return [*samples, Sample("job.cores_count", self._cores, now, "" if self._cores else "not known")]

    def _threads(self) -> dict[int, tuple[int, int]]:
        """Thread -> nanoseconds on a processor, and waiting for one."""
        found: dict[int, tuple[int, int]] = {}
        self._count = 0
        for pid, stat in self._tree.refresh().items():
            self._count += stat.threads
            if len(found) >= THREADS_A_READ or stat.state in "ZX":
                continue
            folder = f"{self._tree.proc}/{pid}/task"
            try:
                for tid in os.listdir(folder)[: THREADS_A_READ - len(found)]:  # noqa: PTH208
                    ran, waited = read(f"{folder}/{tid}/schedstat").split()[:2]
                    found[int(tid)] = (int(ran), int(waited))
            except (OSError, ValueError):
                continue  # the process has ended
        return found


def usable_cores(scope: Scope) -> float | None:
    """By affinity, or by a container's quota where that is lower."""
    try:
        cores = float(len(os.sched_getaffinity(scope.script_pid)))
    except OSError:
        return None
    return min([cores, *_quotas(scope)])


def _quotas(scope: Scope) -> list[float]:
    found = []
    try:
        belonging = membership(scope.root, scope.script_pid)
    except OSError:
        return []
    group = hierarchy_of("cpu", belonging, scope.root, scope.script_pid, mark="cgroup.procs")
    for folder in group.folders if group is not None else ():
        try:
            if group is not None and group.version == 2:
                quota, period = read(f"{folder}/cpu.max").split()
            else:
                quota, period = read(f"{folder}/cpu.cfs_quota_us").strip(), read(f"{folder}/cpu.cfs_period_us").strip()
            if int(quota) > 0:
                found.append(int(quota) / int(period))
        except (OSError, ValueError):  # no limit there: `max`, or no such file
            continue
    return found
