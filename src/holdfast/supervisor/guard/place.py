"""Which groups the job gets, and the last line the kernel keeps in them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from holdfast.actions.contain import OURS, Groups, find_groups, make_groups, process_name
from holdfast.actions.hold import Freezer
from holdfast.probes.cgroup_paths import hierarchy_of, membership

CONTROLLERS = ("memory", "freezer")
ROOT = Path("/")


def contain_job(policy: str, relay_pid: int) -> Groups:
    """Only where acting is allowed. Named after the relay, so that whoever survives can clean up."""
    if policy != "protect":
        return Groups()
    version, parents = _parents()
    return make_groups(version, parents, process_name(relay_pid), (os.getpid(), relay_pid))


def groups_of(relay_pid: int) -> Groups:
    """Those that are there, for a relay whose watcher was killed."""
    version, parents = _parents()
    return find_groups(version, parents, process_name(relay_pid))


def thaw(groups: Groups) -> None:
    if "freezer" in groups.folders:
        with contextlib.suppress(OSError):
            Freezer(groups.folders["freezer"], groups.version).release()


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
    """The limit of the job's own group, between our line and the end: the kernel then kills in there, not elsewhere.

    It follows what is free: memory that a neighbour gives back is the job's to use.
    """

    STEP_BYTES = 16 << 20

    def __init__(self, folder: str, version: int) -> None:
        name = "memory.limit_in_bytes" if version == 1 else "memory.max"
        self._fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        self._set = 0.0

    def follow(self, bytes_: float, in_use_bytes: float) -> None:
        """A limit below what is in use, cache included, would have us wait in the kernel until it is dropped: later."""
        if abs(bytes_ - self._set) < max(self.STEP_BYTES, 0.01 * self._set):
            return
        if bytes_ < self._set and bytes_ < in_use_bytes + self.STEP_BYTES:
            return
        self._set = bytes_
        with contextlib.suppress(OSError):  # grown meanwhile: next time
            os.write(self._fd, str(int(bytes_)).encode())
