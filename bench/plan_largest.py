"""The largest batch under a memory limit: `holdfast plan` beside brute force and the finders of Accelerate and Lightning.

A limit of the kernel's (a memory cgroup, version 1) holds the script. On a CPU there is no error at a limit but the kernel's
kill, so the other finders, which catch errors, end with the process; that is told. Then STEPS steps are run at what each found.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench.plan import SECONDS, Model
from holdfast.cli.plan_process import Measuring, measure
from holdfast.planning.plan import Room, plan

ROOT = Path("/sys/fs/cgroup/memory")
MODELS = (Model("torch", "cnn", "adam", "float32"), Model("keras", "dense", "adam", "float32"))
LIMIT_BYTES = 700 << 20
STEPS, SURVIVES = 6, 500
OWN = {"cnn": 16, "dense": 128}
FINDERS = Path(__file__).parent / "programs" / "batch_finders.py"


@contextmanager
def group(limit: int) -> Iterator[Path]:
    path = ROOT / f"holdfast-bench-{os.getpid()}"
    path.mkdir()
    (path / "memory.limit_in_bytes").write_text(str(limit))
    try:
        yield path
    finally:
        until = time.monotonic() + 10
        while path.exists() and time.monotonic() < until:
            with suppress(OSError):  # the kernel has not let go of the last process yet
                path.rmdir()
            time.sleep(0.05)


def survives(model: Model, batch: int, steps: int) -> bool:
    with group(LIMIT_BYTES) as path:
        return _run(model.command(batch, steps), path).returncode == 0


def _run(command: tuple[str, ...], path: Path) -> subprocess.CompletedProcess[str]:
    words = ["sh", "-c", f'echo $$ > {path}/cgroup.procs; exec "$@"', "sh", *command]
    return subprocess.run(words, capture_output=True, text=True, check=False)


def brute_force(model: Model, low: int) -> int:
    """By halves, each in a process of its own, to 2 %."""
    high = 2 * low
    while survives(model, high, STEPS):
        low, high = high, 2 * high
    while high - low > max(1, low // 50):
        middle = (low + high) // 2
        low, high = (middle, high) if survives(model, middle, STEPS) else (low, middle)
    return low


def planned(model: Model) -> tuple[int, float, int]:
    began = time.monotonic()
    wanted = Measuring(model.command(OWN[model.kind]), Path.cwd(), None, SECONDS, 600.0, 8 << 30, LIMIT_BYTES)
    found = measure(wanted, lambda _text: None).measured
    largest = plan(found, Room(LIMIT_BYTES)).largest_batch
    assert largest is not None
    return largest, time.monotonic() - began, len(found.points)


def finder(name: str) -> str:
    began = time.monotonic()
    with group(LIMIT_BYTES) as path:
        done = _run((sys.executable, str(FINDERS), name), path)
    took = time.monotonic() - began
    if done.returncode:
        return f"ended with {done.returncode} (killed by the kernel) after {took:.0f} s"
    return f"{json.loads(done.stdout.splitlines()[-1])['batch']} in {took:.0f} s"


def main(without_brute_force: bool, only: str | None) -> None:
    for model in (one for one in MODELS if only in (None, one.framework)):
        largest, took, probes = planned(model)
        told = f"plan {largest} in {took:.0f} s with {probes} sizes"
        if not without_brute_force:
            true = brute_force(model, max(1, int(0.8 * largest)))
            told += f", brute force {true} ({100 * (largest - true) / true:+.1f} %)"
        kept = "survive" if survives(model, largest, SURVIVES) else "do not survive"
        print(
            f"plan largest: {' '.join(model)} within {LIMIT_BYTES >> 20} MiB: {told}; {SURVIVES} steps {kept}",
            flush=True,
        )
    for name in ("accelerate", "lightning") if only is None else ():
        print(f"plan largest: {name} on the same torch cnn in the same group: {finder(name)}", flush=True)
