"""A limit that TensorFlow enforces itself on the CPU: the kernel's kill becomes a ResourceExhaustedError.

TensorFlow reads the limit when its first operation makes the allocator, which is after its import: so it is set then,
less what the process holds by then, NumPy's arrays included but not the libraries it maps: those pages are the page
cache's, about 330 MiB of TensorFlow's, and its container is charged for none of them. With oneDNN, the default on x86, the allocator is the one
that is there anyway and only its limit changes (results and speed stay); without it TensorFlow calls malloc, and the
switch to an allocator with a limit is made only because a budget cannot be had otherwise.
"""

from __future__ import annotations

import os
import platform
from importlib import import_module
from typing import Any, Optional

from ..guard import guarded
from ..telemetry import Recorder

LEAST = 16 << 20  # TensorFlow starts with that
OURS = ("TF_MKL_ALLOC_MAX_BYTES", "TF_CPU_ALLOCATOR_USE_BFC", "TF_CPU_BFC_MEM_LIMIT_IN_MB")


def budget_of(recorder: Recorder) -> Optional[int]:
    if recorder.settings.get("policy") != "protect":
        return None
    budget = (recorder.settings.get("rescue") or {}).get("host_budget_bytes")
    return int(budget) if budget else None


def limit_allocator(recorder: Recorder) -> None:
    budget = budget_of(recorder)
    if budget is None or any(name in os.environ for name in OURS):  # the user's own limits are his
        return
    context: Any = import_module("tensorflow.python.eager.context").Context
    original = context.ensure_initialized
    set_limit = guarded(_set_limit)

    def ensure_initialized(self: Any) -> Any:
        if not self._initialized:
            context.ensure_initialized = original
            set_limit(recorder, budget)
        return original(self)

    context.ensure_initialized = ensure_initialized


def _set_limit(recorder: Recorder, budget: int) -> None:
    held = held_bytes()
    limit = max(LEAST, budget - held)
    for name, value in _words(limit).items():
        os.environ[name] = value
    recorder.event("memory.budget", budget_bytes=budget, held_bytes=held, limit_bytes=limit, where="host")


def _words(limit: int) -> dict[str, str]:
    if platform.machine() in ("x86_64", "AMD64") and os.environ.get("TF_ENABLE_ONEDNN_OPTS", "1") != "0":
        return {"TF_MKL_ALLOC_MAX_BYTES": str(limit)}
    return {"TF_CPU_ALLOCATOR_USE_BFC": "true", "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(limit >> 20)}


def held_bytes() -> int:
    with open("/proc/self/statm", "rb") as file:
        _, resident, of_files, *_ = map(int, file.read().split())
    return (resident - of_files) * os.sysconf("SC_PAGE_SIZE")
