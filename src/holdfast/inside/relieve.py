"""Gives back what this process holds without need: garbage, freed heap, caches that fill again by themselves.

Runs at a step's boundary when the watcher asks. Nothing a result depends on is touched. Compiled functions stay: to
compile them again takes longer than all of this brings.
"""

from __future__ import annotations

import ctypes
import gc
import sys
from typing import Any

from .telemetry import Recorder, now


def install(recorder: Recorder) -> None:
    recorder.on_command("relieve", lambda command: relieve())


def relieve() -> str:
    """Returns what it brought, in one line for the record."""
    began, before = now(), _resident()
    done = ["collected"]
    gc.collect()
    if "torch" in sys.modules and _empty_gpu_cache(sys.modules["torch"]):
        done.append("GPU cache emptied")
    if _trim():
        done.append("trimmed")
    back = max(0, before - _resident())
    return f"{', '.join(done)}: {back >> 20} MiB back in {now() - began:.2f} s"


def _empty_gpu_cache(torch: Any) -> bool:
    """Cached blocks of the GPU, and of the pinned memory that feeds it; a process without CUDA is left without."""
    cuda = getattr(torch, "cuda", None)
    if cuda is None or not cuda.is_initialized():
        return False
    cuda.empty_cache()
    return True


def _trim() -> bool:
    """glibc keeps freed memory to itself."""
    try:
        return bool(ctypes.CDLL(None).malloc_trim(0))
    except (AttributeError, OSError):
        return False


def _resident() -> int:
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * 4096
    except (OSError, ValueError, IndexError):
        return 0
