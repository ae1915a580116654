"""How much memory the job may take: what is free less a reserve, limits of containers respected, or what the user said.

The part inside the training process makes a limit of it that the framework enforces itself, so that the kernel's kill
becomes an error that can be caught. Nothing of this under `observe` and `advise`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.probes.cgroup import NO_LIMIT_FROM, V1, V2
from holdfast.probes.cgroup_paths import hierarchy_of, membership
from holdfast.probes.host_memory import available
from holdfast.probes.kernel_files import numbers, read, under
from holdfast.supervisor.task import Task

# Of what is free. A run that needs 90 % is healthy and is not to be touched; the rest of the machine needs some to live.
RESERVE_RATIO = 0.04
RESERVE_AT_LEAST, RESERVE_AT_MOST = 32 << 20, 768 << 20


def rescue_settings(task: Task, k: int | None = None, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What `settings.json` says about memory; nothing where the policy is not to act."""
    if task.policy != "protect":
        return {}
    budget = task.memory_bytes or free_bytes()
    ranks = _ranks(environment)
    return {
        "rescue": {
            "k": k,
            "host_budget_bytes": None if budget is None else budget // ranks,
            "gpu_budget_bytes": task.gpu_memory_bytes,
        }
    }


def free_bytes(root: Path = Path("/"), pid: int | None = None) -> int | None:
    """For a job that starts now, less the reserve; None where nothing says."""
    free = [size for size in (_machine(root), _group(root, pid or os.getpid())) if size is not None]
    if not free:
        return None
    least = min(free)
    reserve = min(RESERVE_AT_MOST, max(RESERVE_AT_LEAST, int(least * RESERVE_RATIO)))
    return max(0, least - reserve)


def _machine(root: Path) -> int | None:
    try:
        return available(numbers(read(under(root, "/proc/meminfo"))))
    except OSError:
        return None


def _group(root: Path, pid: int) -> int | None:
    """The tightest of the group and its ancestors. Page cache is given up when memory is needed: it counts as free."""
    try:
        group = hierarchy_of("memory", membership(root, pid), root, pid)
    except OSError:
        return None
    if group is None:
        return None
    names = V1 if group.version == 1 else V2
    room = [
        left for folder in group.folders if (left := _room(folder, names.limit, names.usage, names.cache)) is not None
    ]
    return min(room, default=None)


def _room(folder: str, limit_name: str, usage_name: str, cache: tuple[str, ...]) -> int | None:
    try:
        limit = int(read(f"{folder}/{limit_name}"))
        stat = numbers(read(f"{folder}/memory.stat"))
        used = int(read(f"{folder}/{usage_name}")) - sum(stat.get(key, 0) for key in cache)
    except (OSError, ValueError):  # the root group has no limit; v2 writes `max`
        return None
    return None if limit >= NO_LIMIT_FROM else max(0, limit - used)


def _ranks(environment: Mapping[str, str]) -> int:
    """A launcher says how many of us share this machine."""
    for name in ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE"):
        value = environment.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return 1
