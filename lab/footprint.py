"""What importing a framework takes on this machine, so that limits can be given above it.

A build for GPUs holds twice the memory of one for CPUs, and a slow machine spends seconds on an import: a limit in plain
numbers would test the machine. Measured once for each framework.
"""

from __future__ import annotations

import functools
import json
import math
import subprocess
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, replace

from .case import FRAMEWORKS, Limits
from .stage import CannotStage

PATIENCE_S = 300.0
MEASURE = """
import importlib, json, sys, time
for module in sys.argv[1:]:
    importlib.import_module(module)
held = [line.split() for line in open("/proc/self/status")]
kib = sum(int(line[1]) for line in held if line[0] in ("RssAnon:", "RssShmem:"))
print(json.dumps([kib * 1024, time.process_time()]))
"""
_measuring = threading.Lock()


@dataclass(frozen=True, slots=True)
class Footprint:
    memory_bytes: int
    cpu_s: float


def resolved(limits: Limits, framework: str, environment: Mapping[str, str]) -> Limits:
    """The limits in plain numbers."""
    if not limits.memory_above_imports and not limits.cpu_above_imports:
        return limits
    with _measuring:  # one at a time, and each only once
        took = _footprint(FRAMEWORKS[framework], tuple(sorted(environment.items())))
    if limits.memory_above_imports and limits.memory is not None:
        limits = replace(limits, memory=limits.memory + took.memory_bytes, memory_above_imports=False)
    if limits.cpu_above_imports and limits.cpu_seconds is not None:
        limits = replace(limits, cpu_seconds=limits.cpu_seconds + math.ceil(took.cpu_s), cpu_above_imports=False)
    return limits


@functools.cache
def _footprint(modules: tuple[str, ...], environment: tuple[tuple[str, str], ...]) -> Footprint:
    """The first import after a while reads from the disk and compiles: the second one counts."""
    measure = [sys.executable, "-c", MEASURE, *modules]
    for _ in range(2):
        ran = subprocess.run(
            measure, env=dict(environment), capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        if ran.returncode:
            raise CannotStage(f"{' and '.join(modules)} cannot be imported: {ran.stderr.strip().splitlines()[-1:]}")
    memory, cpu = json.loads(ran.stdout.strip().splitlines()[-1])
    return Footprint(int(memory), float(cpu))
