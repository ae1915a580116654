"""How much memory the job may take, as the user said.

The part inside the training process makes a limit of it that the framework enforces itself, so that the kernel's kill
becomes an error that can be caught. Nothing of this under `observe` and `advise`. Turned down for now: a budget by
default, of what is free less a reserve: three healthy programs in small containers failed at it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from holdfast.supervisor.task import Task


def rescue_settings(task: Task, k: int | None = None, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """What `settings.json` says about memory; nothing where the policy is not to act."""
    if task.policy != "protect":
        return {}
    budget = task.memory_bytes
    ranks = _ranks(environment)
    return {
        "rescue": {
            "k": k,
            "host_budget_bytes": None if budget is None else budget // ranks,
            "gpu_budget_bytes": task.gpu_memory_bytes,
        }
    }


def _ranks(environment: Mapping[str, str]) -> int:
    """A launcher says how many of us share this machine."""
    for name in ("LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE", "OMPI_COMM_WORLD_LOCAL_SIZE"):
        value = environment.get(name, "")
        if value.isdigit() and int(value) > 0:
            return int(value)
    return 1
