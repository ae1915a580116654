"""Which groups the job gets, and the last line the kernel keeps in them."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from holdfast.actions.contain import Groups, make_groups
from holdfast.probes.cgroup_paths import hierarchy_of, membership

CONTROLLERS = ("memory", "cpu", "freezer", "blkio")
ROOT = Path("/")


def contain_job(policy: str, relay_pid: int) -> Groups:
    """Only where acting is allowed. Named after the relay, so that whoever survives can clean up."""
    if policy != "protect":
        return Groups()
    try:
        belonging = membership(ROOT, os.getpid())
    except OSError:
        return Groups()
    parents, version = {}, 0
    for controller in CONTROLLERS:
        found = hierarchy_of(controller, belonging, ROOT, os.getpid(), mark="cgroup.procs")
        if found is not None and (version in (0, found.version)):
            version = found.version
            parents[controller] = found.folders[0]
    return make_groups(version, parents, str(relay_pid), (os.getpid(), relay_pid))


class LastLine:
    """The limit of the job's own group, between our line and the end: the kernel then kills in there, not elsewhere.

    It follows what is free: memory that a neighbour gives back is the job's to use.
    """

    STEP_BYTES = 16 << 20

    def __init__(self, folder: str, version: int) -> None:
        name = "memory.limit_in_bytes" if version == 1 else "memory.max"
        self._fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        self._set = 0.0

    def follow(self, bytes_: float) -> None:
        if abs(bytes_ - self._set) < max(self.STEP_BYTES, 0.01 * self._set):
            return
        self._set = bytes_
        with contextlib.suppress(OSError):  # below what is in use now: next time
            os.write(self._fd, str(int(bytes_)).encode())
