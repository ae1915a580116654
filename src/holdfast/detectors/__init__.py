"""Window -> Finding | None. One kind of failure a file; thresholds in a frozen dataclass at its top."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.detectors import (
    budget_crash,
    cpu_oversubscribed,
    data_exhausted,
    gpu_not_used,
    guard_stop,
    killed_while_loading,
    leak,
    limit_reached,
    machine_down,
    memory_kill,
    native_crash,
    reported_out_of_memory,
    starvation,
    stopped,
    uncounted_leak,
)
from holdfast.detectors.exhaustion import find_edges
from holdfast.vocabulary import Finding, Window

ENDINGS: tuple[Callable[[Window], Finding | None], ...] = (
    memory_kill.find,
    killed_while_loading.find,
    uncounted_leak.find,
    guard_stop.find,
    stopped.find_asked,
    stopped.find_killed,
    native_crash.find,
    budget_crash.find,
    reported_out_of_memory.find,
    limit_reached.find_disk,
    limit_reached.find_shared_memory,
    limit_reached.find_open_files,
    limit_reached.find_processes,
    machine_down.find,
    data_exhausted.find_ending,
)
WHILE_TRAINING: tuple[Callable[[Window], Finding | None], ...] = (
    leak.find_host,
    leak.find_gpu,
    starvation.find,
    data_exhausted.find,
    gpu_not_used.find,
    cpu_oversubscribed.find,
)


def find_troubles(window: Window) -> list[Finding]:
    """While it runs."""
    return [*find_edges(window), *(finding for find in WHILE_TRAINING if (finding := find(window)) is not None)]


def find_endings(window: Window) -> list[Finding]:
    return [*(finding for find in ENDINGS if (finding := find(window)) is not None), *leak.find_ending(window)]
