"""Which control groups the job gets, and the limit that the kernel enforces in them."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from holdfast.actions import job_cgroups
from holdfast.actions.hold import Freezer
from holdfast.actions.job_cgroups import OURS, Groups, below, find_groups, make_groups, process_name
from holdfast.inside.headroom import GROUP_FILES
from holdfast.probes.cgroup_paths import hierarchy_of, membership
from holdfast.supervisor.guard.gauges import Gauge, Use
from holdfast.supervisor.launch_context import scheduler
from holdfast.vocabulary import JOB_GROUP_PREFIX

CONTROLLERS = ("memory", "freezer")
ROOT = Path("/")


def contain_job(policy: str, relay_pid: int) -> Groups:
    """Only where acting is allowed. Named after the relay, so that any of our processes can find and remove it."""
    if policy != "protect":
        return Groups()
    version, parents = _parents()
    return make_groups(version, parents, process_name(relay_pid), relay_pid)


def contain_in_scope(groups: Groups, relay_pid: int, script_pid: int) -> tuple[Groups, dict[str, str | float]]:
    """Where the running script has no memory group of its own: in a scope made by systemd. Returns its groups and what is
    to be recorded about it."""
    place = hierarchy_of("memory", membership(ROOT, os.getpid()), ROOT, os.getpid(), mark="cgroup.procs")
    if "memory" in groups.folders or place is None or place.version != 2:
        return groups, {}
    folder, top = place.folders[0].removesuffix(f"/{OURS}"), place.folders[-1]
    if reason := _no_scope(place.path, folder, top):
        return groups, {"no_scope": reason}
    try:
        from holdfast.actions.systemd_scope import move_into_scope  # noqa: PLC0415 - few need it, and D-Bus with it
    except ImportError as error:
        return groups, {"no_scope": str(error)}
    name = process_name(relay_pid)
    began = time.monotonic()
    found, reason = move_into_scope(groups, folder, top, name=name, script_pid=script_pid)
    about = {"no_scope": reason} if reason else {"scope": f"holdfast-{name}.scope"}
    return found, {**about, "scope_ms": round((time.monotonic() - began) * 1000, 1)}


def _no_scope(path: str, folder: str, top: str) -> str:
    """Why no scope is to be asked for."""
    from holdfast.actions.scope_rules import why_not  # noqa: PLC0415

    if job_cgroups.HANDED_DOWN not in (Path(top) / "cgroup.controllers").read_text().split():
        return "memory is not controlled in version 2 here"
    if name := scheduler(os.environ):
        return f"the job is {name}'s"
    if top + path.removesuffix(f"/{OURS}") != folder:
        return "the group is not where the kernel says"
    return why_not(folder, os.geteuid())


def groups_of(relay_pid: int) -> Groups:
    """The groups that exist already, for a relay whose watcher was killed."""
    version, parents = _parents()
    found = find_groups(version, parents, process_name(relay_pid))
    return found if found.folders or version != 2 else _in_scope(relay_pid)


def _in_scope(relay_pid: int) -> Groups:
    """The scope the job runs in. None is left of a job that has ended: systemd removes an empty scope."""
    for pid in below(relay_pid):
        with contextlib.suppress(OSError):
            place = hierarchy_of("memory", membership(ROOT, pid), ROOT, pid, mark="cgroup.procs")
            if place is not None and place.path.endswith(f"/{JOB_GROUP_PREFIX}{process_name(relay_pid)}"):
                return Groups(place.version, dict.fromkeys(CONTROLLERS, place.folders[0]))
    return Groups()


def let_go(groups: Groups) -> None:
    """The guard is gone: the job is resumed, and its limit is taken away, since nothing adjusts it any more."""
    if "freezer" in groups.folders:
        with contextlib.suppress(OSError):
            Freezer(groups.folders["freezer"], groups.version).release()
    if "memory" in groups.folders:
        with contextlib.suppress(OSError):
            limit = Path(groups.folders["memory"]) / GROUP_FILES[groups.version].limit
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
            parents[controller] = folder.removesuffix(f"/{OURS}")  # our own processes moved into that one
    return version, parents


class LastLine:
    """The limit of the job's own group, just below what is free: beyond it the kernel kills in that group, not elsewhere.

    It follows what is free, so the job can use memory that another program gives back. It is never lower than what is
    free allows: a healthy job may come near it.
    """

    STEP_BYTES, STEP_RATIO = 1 << 20, 0.125  # smallest change: so much, or this share of the margin above the limit

    def __init__(self, folder: str, version: int) -> None:
        self._fd = os.open(f"{folder}/{GROUP_FILES[version].limit}", os.O_WRONLY | os.O_CLOEXEC)
        self._set = float("inf")

    def follow(self, before_bytes: float, own: Use, gauges: Iterable[Gauge]) -> None:
        """`own` was read before and after the gauges, so what the job took in between is known."""
        nearest = min(gauges, key=lambda gauge: gauge.left_alone)
        step = max(self.STEP_BYTES, self.STEP_RATIO * nearest.margin)
        wanted = own.taken + max(nearest.left_alone, 0.0) + step
        if abs(wanted - self._set) < step:
            return
        # Setting it below what is in use, cache included, would block in the kernel until cache is dropped: later.
        if wanted < self._set and (wanted < own.usage + step or abs(own.taken - before_bytes) > step):
            return
        with contextlib.suppress(OSError):  # the job has grown meanwhile: next turn
            os.write(self._fd, str(int(wanted)).encode())
            self._set = wanted
