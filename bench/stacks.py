"""How long does a process with 50 threads stand still while its stacks are taken? `python -m bench.stacks [DUMPS]`

A busy one times its own answers: no Python runs in it meanwhile. By the clock that holds also what other programs took of the
processors. Of one whose threads all wait it is told how long the dump took: they have nothing to lose.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from holdfast.stack_snapshots import TreeSnapshot
from holdfast.supervisor import tree_stacks

PROGRAM = Path(__file__).parent / "programs" / "fifty_threads.py"
BOOTSTRAP = Path(tree_stacks.__file__).parents[1] / "inside" / "bootstrap"
THREADS = 50
DEPTHS = (10, 60)
BETWEEN_S, SETTLES_S = 0.1, 0.5


def main() -> None:
    dumps = int(sys.argv[1]) if sys.argv[1:] else 100
    about = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, {os.cpu_count()} cores, Python {sys.version.split()[0]}"
    print(f"{about}, {dumps} dumps each")
    for depth in DEPTHS:
        of = f"stacks, {THREADS} threads of {depth} frames"
        by_clock, processor = measure_busy(depth, dumps)
        print(f"{of}, main thread busy: stands still for {_told(by_clock)}, of which it works {_told(processor)}")
        took, complete = measure_still(depth, dumps)
        print(f"{of}, all wait: taken in {_told(took)}; all threads in {complete} of {dumps}")


def measure_busy(depth: int, dumps: int) -> tuple[list[float], list[float]]:
    """Seconds of each answer: by the clock, and of processor time."""
    with tempfile.TemporaryDirectory() as place:
        answers = Path(place) / "answers.json"
        with started("busy", depth, place, answers) as process:
            _take(process.pid, dumps)
        by_clock, processor = zip(*json.loads(answers.read_text()), strict=True)
    return list(by_clock), list(processor)


def measure_still(depth: int, dumps: int) -> tuple[list[float], int]:
    """Seconds of each dump, and how many had the stacks of all threads."""
    with tempfile.TemporaryDirectory() as place, started("still", depth, place, Path(place) / "none") as process:
        taken = _take(process.pid, dumps)
    complete = [sum(bool(thread.frames) for thread in one.processes[0].threads) == THREADS for one in taken]
    return [snapshot.took_s for snapshot in taken], sum(complete)


@contextmanager
def started(kind: str, depth: int, place: str, answers: Path) -> Iterator[subprocess.Popen[bytes]]:
    """With Holdfast's part inside and nothing else of it."""
    environment = os.environ | {"PYTHONPATH": str(BOOTSTRAP), "HOLDFAST_CHANNEL": place}
    command = [sys.executable, str(PROGRAM), kind, str(depth), str(answers)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            time.sleep(SETTLES_S)
            yield process
        finally:
            process.send_signal(signal.SIGTERM if kind == "busy" else signal.SIGKILL)


def _take(pid: int, dumps: int) -> list[TreeSnapshot]:
    taken = []
    for _ in range(dumps):
        time.sleep(BETWEEN_S)
        taken.append(tree_stacks.take([pid]))
    return taken


def _told(seconds: Sequence[float]) -> str:
    largest = sorted(seconds)
    high = largest[min(len(largest) - 1, int(0.95 * len(largest)))]
    return f"{statistics.median(seconds) * 1000:.2f} ms (95 % below {high * 1000:.2f}, most {largest[-1] * 1000:.2f})"


if __name__ == "__main__":
    main()
