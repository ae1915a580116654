"""Window -> Finding | None. One kind of failure a file; thresholds in a frozen dataclass at its top."""

from __future__ import annotations

from functools import partial

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
from holdfast.detectors.exhaustion import EDGES, find_edge
from holdfast.detectors.runner import Detector
from holdfast.vocabulary import Finding, Window

# Memory first: the cheapest, and the ones whose warning must not wait for anything.
WHILE_RUNNING: tuple[Detector, ...] = (
    *(Detector(f"filling: {edge.what}", partial(find_edge, edge=edge)) for edge in EDGES),
    Detector("host-memory-leak", leak.find_host),
    Detector("gpu-memory-leak", leak.find_gpu),
    Detector("input-starvation", starvation.find),
    Detector("data-exhausted", data_exhausted.find),
    Detector("gpu-not-used", gpu_not_used.find),
    Detector("cpu-oversubscribed", cpu_oversubscribed.find),
)
# Right after the script has ended: a run that stops early often ends within the second.
AT_THE_END: tuple[Detector, ...] = (Detector("data-exhausted", data_exhausted.find),)
ENDINGS: tuple[Detector, ...] = (
    Detector("memory-kill", memory_kill.find),
    Detector("killed-while-loading", killed_while_loading.find),
    Detector("uncounted-leak", uncounted_leak.find),
    Detector("guard-stop", guard_stop.find),
    Detector("asked-to-stop", stopped.find_asked),
    Detector("killed", stopped.find_killed),
    Detector("native-crash", native_crash.find),
    Detector("budget-crash", budget_crash.find),
    Detector("reported-out-of-memory", reported_out_of_memory.find),
    Detector("disk-full", limit_reached.find_disk),
    Detector("shared-memory-exhausted", limit_reached.find_shared_memory),
    Detector("too-many-open-files", limit_reached.find_open_files),
    Detector("too-many-processes", limit_reached.find_processes),
    Detector("machine-down", machine_down.find),
    Detector("data-exhausted", data_exhausted.find_ending),
    Detector("leak", leak.find_ending),
)


def find_endings(window: Window) -> list[Finding]:
    """What ended a run, by every detector in turn; one that raises is heard. `runner` calls each alone."""
    return [finding for detector in ENDINGS for finding in detector.findings(window)]
