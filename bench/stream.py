"""What streaming costs: data of four times the memory the job may use, against data that fits, on the same step; and what 20 GB take.

`python -m bench.stream [--rounds 5] [--seconds 10] [--limit 1G]`. Needs root and control groups of version 1: the data is read by a job that has no
room for it, also not as page cache. The model computes with one thread, as it does where a GPU does the work: on a machine that others
use, two that wait for each other would measure the neighbours.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from bench.holdfast_command import figures_of, program
from bench.interleave import Comparison, interleave
from holdfast.units import bytes_of

GROUPS = Path("/sys/fs/cgroup/memory")
WIDTH, BATCH = 12288, 64  # 64 × 64 pixels of three colours; 3 MiB a batch
TIMES = 4  # the memory that the job may use
SPARSE_BYTES = 20_000_000_000
THROUGH = """
import sys, time
import numpy, holdfast.data
began, rows = time.perf_counter(), 0
for batch in holdfast.data.open(sys.argv[1], batch=1024, shuffle=True, seed=1):
    rows += len(batch)
seconds = time.perf_counter() - began
peak = next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(rows, seconds, peak >> 10)
"""


@contextmanager
def memory_group(limit: int) -> Iterator[Path]:
    group = GROUPS / f"holdfast-bench-stream-{os.getpid()}"
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text(str(limit))
        yield group
    finally:
        for _ in range(50):
            with suppress(OSError):
                group.rmdir()
            if not group.exists():
                break
            time.sleep(0.1)


def write_rows(path: Path, size: int) -> int:
    """Random numbers, so that nothing is compressed on the way."""
    rows, chance = size // (4 * WIDTH), np.random.default_rng(0)
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, WIDTH)})
        for first in range(0, rows, 512):
            file.write(chance.random((min(512, rows - first), WIDTH), np.float32).tobytes())
        file.flush()
        os.fsync(file.fileno())
        os.posix_fadvise(
            file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED
        )  # else it lies in the page cache of this process' group
    np.save(path.with_name("rows.labels.npy"), chance.integers(0, 10, rows))
    return rows


def measure(framework: str, way: str, data: Path, group: Path, seconds: float) -> tuple[float, float]:
    """Milliseconds a step: of the clock, and of all the process's threads on a processor."""
    threads = "export OMP_NUM_THREADS=1 TF_NUM_INTRAOP_THREADS=1 TF_NUM_INTEROP_THREADS=1; "
    enter = (
        threads
        + f"echo $$ > {group}/cgroup.procs; exec "
        + subprocess.list2cmdline(
            [sys.executable, program("stream_steps.py"), framework, way, str(data), str(BATCH), str(seconds)]
        )
    )
    found = figures_of(["bash", "-c", enter])
    return 1e3 * found["step_s"], 1e3 * found["cpu_s"]


def compare(framework: str, data: Path, group: Path, options: argparse.Namespace) -> tuple[Comparison, Comparison]:
    """By the clock, and by processor time, which neighbours change less."""
    of_processors: tuple[list[float], list[float]] = ([], [])

    def one(which: int, way: str) -> float:
        wall, processor = measure(framework, way, data, group, options.seconds)
        of_processors[which].append(processor)
        return wall

    by_the_clock = interleave(lambda: one(0, "memory"), lambda: one(1, "stream"), options.rounds)
    return by_the_clock, Comparison(*of_processors)


def through(place: Path) -> str:
    """A file with holes: what it takes to go through it, without a disk."""
    path = place / "sparse.npy"
    rows = SPARSE_BYTES // 4096
    with path.open("wb") as file:
        np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": (rows, 1024)})
        file.truncate(file.tell() + rows * 4096)
    done = subprocess.run([sys.executable, "-c", THROUGH, str(path)], capture_output=True, text=True, check=True)
    path.unlink()
    count, seconds, peak = done.stdout.split()
    speed = int(count) * 4096 / float(seconds) / 1e9
    return f"streamed, {SPARSE_BYTES / 1e9:.0f} GB with holes, shuffled: {speed:.2f} GB/s, peak RSS {peak} MiB"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--limit", type=bytes_of, default=1 << 30)
    parser.add_argument("--place", type=Path, default=None, help="where the data is written; a disk, not memory")
    parser.add_argument("--frameworks", nargs="+", choices=("torch", "keras"), default=("torch", "keras"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.place) as folder:
        print(through(Path(folder)), flush=True)
        data = Path(folder) / "rows.npy"
        rows = write_rows(data, TIMES * options.limit)
        print(
            f"{rows} rows of {4 * WIDTH >> 10} KiB on disk, {TIMES} times the job's limit of {options.limit >> 20} MiB"
        )
        with memory_group(options.limit) as group:
            for framework in options.frameworks:
                by_the_clock, of_processors = compare(framework, data, group, options)
                for what, found in (("ms", by_the_clock), ("ms of processor time", of_processors)):
                    told = str(found).replace("bare", "from memory").replace("with Holdfast", "streamed")
                    print(f"stream, {framework}, a step of {BATCH * 4 * WIDTH >> 20} MiB, {what}: {told}", flush=True)


if __name__ == "__main__":
    main()
