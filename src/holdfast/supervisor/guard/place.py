"""Which groups the job gets, and the last line the kernel keeps in them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from holdfast.actions.contain import OURS, Groups, find_groups, make_groups, process_name
from holdfast.actions.hold import Freezer
from holdfast.probes.cgroup_paths import hierarchy_of, membership
from holdfast.supervisor.guard.gauges import Gauge, Use

CONTROLLERS = ("memory", "freezer")
ROOT = Path("/")


def contain_job(policy: str, relay_pid: int) -> Groups:
    """Only where acting is allowed. Named after the relay, so that whoever survives can clean up."""
    if policy != "protect":
        return Groups()
    version, parents = _parents()
    return make_groups(version, parents, process_name(relay_pid), relay_pid)


def groups_of(relay_pid: int) -> Groups:
    """Those that are there, for a relay whose watcher was killed."""
    version, parents = _parents()
    return find_groups(version, parents, process_name(relay_pid))


def let_go(groups: Groups) -> None:
    """Nobody guards the job any more: it is not held, and no line follows what is free."""
    if "freezer" in groups.folders:
        with contextlib.suppress(OSError):
            Freezer(groups.folders["freezer"], groups.version).release()
    if "memory" in groups.folders:
        with contextlib.suppress(OSError):
            limit = Path(groups.folders["memory"]) / limit_name(groups.version)
            limit.write_text("-1" if groups.version == 1 else "max")


def _parents() -> tuple[int, dict[str, str]]:
    """The groups we are in, by controller."""
    try:
        belonging = membership(ROOT, os.getpid())
    except OSError:
        return 0, {}
    parents: dict[str, str] = {}
    version = 0
    for controller in CONTROLLERS:
        found = hierarchy_of(controller, belonging, ROOT, os.getpid(), mark="cgroup.procs")
        if found is not None and version in (0, found.version):
            version = found.version
            folder = found.folders[0]
            parents[controller] = folder.removesuffix(f"/{OURS}")  # where we have stepped aside
    return version, parents


class LastLine:
    """The limit of the job's own group, just before the end: the kernel then kills in there, not elsewhere.

    It follows what is free: memory that a neighbour gives back is the job's to use. It is never drawn closer than what
    is free allows: a healthy job may come near it.
    """

    STEP_BYTES, STEP_RATIO = 1 << 20, 0.125  # of the margin that stays beyond it

    def __init__(self, folder: str, version: int) -> None:
        self._fd = os.open(f"{folder}/{limit_name(version)}", os.O_WRONLY | os.O_CLOEXEC)
        self._set = float("inf")

    def follow(self, before_bytes: float, own: Use, gauges: Iterable[Gauge]) -> None:
        """`own` was read before the gauges and after them: what the job took meanwhile is nobody else's."""
        nearest = min(gauges, key=lambda gauge: gauge.left_alone)
        step = max(self.STEP_BYTES, self.STEP_RATIO * nearest.margin)
        wanted = own.taken + max(nearest.left_alone, 0.0) + step
        if abs(wanted - self._set) < step:
            return
        # Below what is in use, cache included, we would wait in the kernel until it is dropped: later.
        if wanted < self._set and (wanted < own.usage + step or abs(own.taken - before_bytes) > step):
            return
        with contextlib.suppress(OSError):  # grown meanwhile: next time
            os.write(self._fd, str(int(wanted)).encode())
            self._set = wanted


def limit_name(version: int) -> str:
    return "memory.limit_in_bytes" if version == 1 else "memory.max"
