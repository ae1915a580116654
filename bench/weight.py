"""Memory, processor time and journal bytes of Holdfast while the job is quiet."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from bench.holdfast_command import HOLDFAST

QUIET_S = 60.0


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        job = [sys.executable, "-c", f"import time; time.sleep({QUIET_S + 6})"]
        relay = subprocess.Popen([*HOLDFAST, *job], cwd=folder)
        time.sleep(3)
        ours = [psutil.Process(relay.pid), *psutil.Process(relay.pid).children()]
        before, bytes_before = _cpu(ours), _journal_bytes(folder)
        time.sleep(QUIET_S)
        used, written = _cpu(ours) - before, _journal_bytes(folder) - bytes_before
        memory = [process.memory_full_info() for process in ours]
        relay.wait()
    rss, pss = sum(m.rss for m in memory), sum(m.pss for m in memory)
    print(
        f"weight: {len(ours)} processes, RSS {rss / 2**20:.1f} MiB (shared pages counted once: {pss / 2**20:.1f} MiB)"
    )
    print(f"processor time while quiet: {used / QUIET_S:.2%} of one core over {QUIET_S:.0f} s")
    print(f"journal: {written / QUIET_S * 3600 / 1e6:.2f} MB an hour at 1 Hz, before thinning")


def _cpu(processes: list[psutil.Process]) -> float:
    return sum(times.user + times.system for process in processes for times in [process.cpu_times()])


def _journal_bytes(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).glob(".holdfast/runs/*/journal/*"))


if __name__ == "__main__":
    main()
