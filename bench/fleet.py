"""How long `holdfast why` takes over a job of many ranks, each with a record of its own: python -m bench.fleet [RANKS] [SECONDS]"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from holdfast.fleet import membership
from holdfast.fleet.events import RankLeft
from holdfast.journal import JournalWriter
from holdfast.recorded_events import FIRST_TRAINER, Exit
from holdfast.vocabulary import Event, Sample

SIGNALS = 80  # beside those of the training: what the probes of a machine with eight cards give
CULPRIT = 37
LOST = "RuntimeError: Connection closed by peer [10.0.0.37]:4411"


def record(runs: Path, rank: int, ranks: int, seconds: int) -> None:
    """An hour as the watcher of one rank writes it; one is killed, the others lose it."""
    run = runs / f"20260101-000000-rank{rank}"
    (run / "journal").mkdir(parents=True)
    began = time.time() - seconds - 60
    identity = {"engine": "slurm", "rank": rank, "world_size": ranks, "job": "4711.0", "host": f"node{rank // 8}"}
    (run / membership.FILE).write_text(json.dumps({**identity, "began": began}))
    clock = [began]
    writer = JournalWriter(run / "journal", "watcher", clock=lambda: clock[0])
    about = {"command": ["python", "train.py"], "script_pid": 100}
    writer.event(Event("run.start", began, about))
    writer.event(Event(FIRST_TRAINER, began, {"pid": 100}))
    names = [f"host.signal{number}_bytes" for number in range(SIGNALS)]
    for second in range(seconds):
        at = clock[0] = began + second
        row = [Sample(name, float(second * 1000 + number), at) for number, name in enumerate(names)]
        values = {"steps_count": 10.0 * second, "step_s": 0.1, "wait_ratio": 0.05, "compute_ratio": 0.9}
        values |= {"own_s": 0.03 + 0.0001 * rank, "own_cpu_s": 0.02, "loss": 1.0 / (1 + second)}
        writer.samples(at, [*row, *(Sample(f"train.{name}", value, at) for name, value in values.items())])
    end = began + seconds
    if rank == min(CULPRIT, ranks - 1):
        writer.event(Exit(137, 9).event(end))
    else:
        writer.event(RankLeft(100, 10 * seconds, LOST, "train.py:9 in main").event(end + 0.1 + 0.001 * rank))
        writer.event(Exit(1).event(end + 1))
    writer.close()


def _processor_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else 64
    seconds = int(sys.argv[2]) if len(sys.argv) > 2 else 3600
    with tempfile.TemporaryDirectory() as folder:
        runs = Path(folder) / "runs"
        for rank in range(ranks):
            record(runs, rank, ranks, seconds)
        size = sum(file.stat().st_size for file in runs.rglob("*") if file.is_file()) / 1e6
        command = [sys.executable, "-m", "holdfast", "why", "--json", "--dir", folder]
        best = processor_s = float("inf")
        for _ in range(3):
            begun, used = time.perf_counter(), _processor_s()
            done = subprocess.run(command, capture_output=True, check=False)
            best, processor_s = min(best, time.perf_counter() - begun), min(processor_s, _processor_s() - used)
        cause = json.loads(done.stdout)["cause"] or {}
        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
        told = (
            f"{best:.1f} s ({processor_s:.1f} s of processor time), peak {peak:.0f} MiB, answer: {cause.get('title')}"
        )
        print(f"why, a job of {ranks} ranks with {seconds} s of record each ({size:.0f} MB): {told}")


if __name__ == "__main__":
    main()
