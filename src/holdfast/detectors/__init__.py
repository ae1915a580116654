"""Window -> Finding | None. One failure a file; thresholds in a frozen dataclass at its top."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.detectors import machine_down, memory_kill, native_crash, stopped, used_up
from holdfast.vocabulary import Finding, Window

ENDINGS: tuple[Callable[[Window], Finding | None], ...] = (
    memory_kill.find,
    stopped.find_asked,
    stopped.find_killed,
    native_crash.find,
    used_up.find_disk,
    used_up.find_shared_memory,
    used_up.find_open_files,
    used_up.find_processes,
    machine_down.find,
)


def find_endings(window: Window) -> list[Finding]:
    return [finding for find in ENDINGS if (finding := find(window)) is not None]
