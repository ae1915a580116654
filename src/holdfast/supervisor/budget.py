"""How much memory the job may take: as the user said, or as much as the kernel will give.

A budget of the user's becomes a limit that the framework enforces itself, so that the kernel's kill becomes an error
that can be caught. Without one no limit is set: the training process is told where to read what its groups have left,
and cuts a batch beforehand where it surely does not fit. Turned down: a limit by default, of what is free less a
reserve. The allocator counts what it reserved, the kernel what was touched; and of what a process holds at its start the
mapped libraries (about 200 MiB of TensorFlow's) cost its container nothing. So healthy programs met it long before the
kernel would have. Nothing of this under `observe` and `advise`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from holdfast.inside.headroom import GROUP_FILES, limit_bytes
from holdfast.probes.cgroup_paths import hierarchy_of, membership
from holdfast.probes.kernel_files import read
from holdfast.supervisor.run_spec import RunSpec
from holdfast.vocabulary import Event, Policy, Sample


def rescue_settings(spec: RunSpec, k: int | None = None, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What `settings.json` says about memory; nothing where the policy is not to act."""
    if spec.policy != Policy.PROTECT:
        return {}
    budget = spec.memory_bytes
    ranks = _ranks(environment)
    return {
        "rescue": {
            "k": k,
            "host_budget_bytes": None if budget is None else budget // ranks,
            "gpu_budget_bytes": spec.gpu_memory_bytes,
            "ranks": ranks,
        }
    }


def budget_samples(spec: RunSpec, now: float) -> list[Sample | Event]:
    """What the user allowed, beside what is used: a detector compares the two."""
    budgets = {"memory": spec.memory_bytes, "gpu_memory": spec.gpu_memory_bytes}
    return [Sample(f"job.{name}_budget_bytes", float(size), now) for name, size in budgets.items() if size]


def groups(root: Path = Path("/"), pid: int | None = None) -> list[dict[str, Any]]:
    """Paths of limit and usage for a group and its ancestors. The script starts in the groups of this process."""
    pid = pid or os.getpid()
    try:
        found = hierarchy_of("memory", membership(root, pid), root, pid)
    except OSError:
        return []
    return [] if found is None else [{"folder": folder, "version": found.version} for folder in found.folders]


def container_limit(root: Path = Path("/"), pid: int | None = None) -> int | None:
    """The smallest memory limit of the groups this process is in."""
    contents = []
    for group in groups(root, pid):
        with contextlib.suppress(OSError):  # the root group has none
            contents.append(read(f"{group['folder']}/{GROUP_FILES[group['version']].limit}"))
    return limit_bytes(*contents)


def _ranks(environment: Mapping[str, str]) -> int:
    """How many ranks share this machine, as the launcher says."""
    for name in ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE"):
        value = environment.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return 1
