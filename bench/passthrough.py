"""Does a script that prints a lot get slower? Against `| cat`, as somebody would otherwise watch it."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time

import psutil

from bench.holdfast_command import HOLDFAST, figure_of, program
from bench.interleave import interleave


def main() -> None:
    flood = [sys.executable, program("flood.py")]
    for what, arguments in (
        ("300 MB of lines, s", ["lines", "300000000"]),
        ("one line of 100 MB, s", ["single", "100000000"]),
    ):
        compared = interleave(
            lambda a=arguments: figure_of([*flood, *a], "seconds", " | cat > /dev/null"),
            lambda a=arguments: figure_of([*HOLDFAST, *flood, *a], "seconds", " > /dev/null"),
            rounds=15,
        )
        print(f"pass-through, {what}: {compared}")
    paced = [sys.executable, program("paced_flood.py"), "50", "2"]
    compared = interleave(
        lambda: figure_of(paced, "mb_per_s", " | cat > /dev/null"),
        lambda: figure_of([*HOLDFAST, *paced], "mb_per_s", " | cat > /dev/null"),
        rounds=10,
    )
    print(f"pass-through, held at 50 MB/s, reached MB/s: {compared}")
    print(f"memory while 2 GB pass through: {_memory_growth() / 2**20:+.1f} MiB")


def _memory_growth() -> float:
    with tempfile.TemporaryDirectory() as folder:
        command = [*HOLDFAST, sys.executable, program("flood.py"), "lines", "2000000000"]
        relay = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(2)
        ours = [psutil.Process(relay.pid), *psutil.Process(relay.pid).children()]
        before = sum(process.memory_info().rss for process in ours)
        most = before
        while relay.poll() is None:
            try:
                most = max(most, sum(process.memory_info().rss for process in ours))
            except psutil.Error:
                break
            time.sleep(0.1)
        relay.wait()
    return most - before


if __name__ == "__main__":
    main()
