"""The limits of the control group this runs in: a container's, a scheduler's slot, a session's."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.checks.contract import Here, Line, bad, ok, warn
from holdfast.checks.memory import LITTLE_BYTES, TOO_LITTLE_BYTES
from holdfast.checks.samples import read_once
from holdfast.probes import Missing
from holdfast.probes.cgroup import Cgroup
from holdfast.probes.cgroup_paths import hierarchy_of, membership
from holdfast.probes.kernel_files import read
from holdfast.units import amount

PROCESSES_LEFT = (32, 256)  # bad below the first, worth a look below the second
MORE_MEMORY = "docker run --memory=16g …, resources.limits.memory in Kubernetes, --mem under Slurm"


def look(here: Here) -> Iterator[Line]:
    try:
        found = read_once(Cgroup, here)
    except Missing as reason:
        yield ok("cgroup-memory", str(reason))
        return
    yield from _memory(found)
    yield from _slowed_down(found)
    yield from _killed_together(here)
    yield from _processes(found)


def _memory(found: dict[str, float | None]) -> Iterator[Line]:
    limit, high = found["cgroup.memory_limit_bytes"], found["cgroup.memory_high_bytes"]
    binding = min((each for each in (limit, high) if each is not None), default=None)
    if binding is None:
        yield ok("cgroup-memory", "no control group limits memory")
        return
    left = max(0.0, binding - (found["cgroup.memory_working_bytes"] or 0.0))
    text = f"{amount(left, 'bytes')} are left of this container's {amount(binding, 'bytes')} of memory"
    if left < TOO_LITTLE_BYTES:
        yield bad("cgroup-memory", text, MORE_MEMORY)
    elif left < LITTLE_BYTES:
        yield warn("cgroup-memory", text, MORE_MEMORY)
    else:
        yield ok("cgroup-memory", text)


def _slowed_down(found: dict[str, float | None]) -> Iterator[Line]:
    limit, high = found["cgroup.memory_limit_bytes"], found["cgroup.memory_high_bytes"]
    if high is not None and (limit is None or high < limit):
        text = (
            f"memory.high is {amount(high, 'bytes')}: beyond it the kernel does not kill, it slows the job down until "
            "it stands still"
        )
        yield warn("cgroup-high", text, "keep below it (holdfast run --memory SIZE), or set memory.high to max")


def _killed_together(here: Here) -> Iterator[Line]:
    try:
        group = hierarchy_of("memory", membership(here.root, here.pid), here.root, here.pid)
    except OSError:
        return
    for folder in group.folders if group is not None and group.version == 2 else ():
        try:
            together = read(f"{folder}/memory.oom.group").strip() == b"1"
        except OSError:  # the root group has none
            continue
        if together:
            text = (
                "memory.oom.group is 1: when memory ends the kernel kills every process of this container at once, "
                "Holdfast's among them"
            )
            fix = "holdfast run --memory SIZE below the container's limit; in Kubernetes the kubelet's singleProcessOOMKill"
            yield warn("cgroup-oom-group", text, fix)
            return


def _processes(found: dict[str, float | None]) -> Iterator[Line]:
    limit, count = found["cgroup.pids_limit_count"], found["cgroup.pids_count"]
    if limit is None or count is None:
        return
    text = f"{count:.0f} of {limit:.0f} processes and threads that this container may have are there"
    fix = "docker run --pids-limit=-1 …, podPidsLimit in Kubernetes, TasksMax= under systemd"
    if limit - count < PROCESSES_LEFT[0]:
        yield bad("cgroup-processes", text, fix)
    elif limit - count < PROCESSES_LEFT[1]:
        yield warn("cgroup-processes", text, fix)
    else:
        yield ok("cgroup-processes", text)
