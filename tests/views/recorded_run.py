"""Runs for the screens, written by the journal's own writer in milliseconds: healthy, leaking, started again, without a framework."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from holdfast.cli.recording import is_alive
from holdfast.journal import JournalWriter
from holdfast.vocabulary import Event, Sample
from tests.story import GIB

NOW = 1_794_858_000.0
PID = 4242


class RecordedRun:
    """A second of the run is one row of samples."""

    def __init__(self, directory: Path, name: str = "20261116-120000-baseline", live: bool = False) -> None:
        self.path = directory / "runs" / name
        (self.path / "journal").mkdir(parents=True)
        self._writer = JournalWriter(self.path / "journal", "watcher")
        self.at = NOW
        self.step = 0
        watcher = {"watched_by": os.getpid(), "watcher_started": _own_start()} if live else {}
        command = ["python", "train.py", "--api-key", "sk-1234"]
        self.event("run.start", command=command, policy="protect", script_pid=PID, script_started=1.0, **watcher)
        self.event("process.appeared", pid=PID, name="python", parent=1, command="python train.py --api-key ***")

    def event(self, kind: str, at: float | None = None, **data: object) -> None:
        self._writer.event(Event(kind, self.at if at is None else at, data))

    def decided(self, decision: str, key: str, text: str, result: str = "said") -> None:
        self.event("decision", decision=decision, key=key, text=text)
        self.event("action", key=key, decision=text, result=result)

    def seconds(self, count: int, **series: float) -> None:
        """Each series grows by `NAME__per_s` a second."""
        for second in range(count):
            self.at += 1.0
            values = {name: value for name, value in series.items() if not name.endswith("__per_s")}
            grown = {name: value + second * series.get(f"{name}__per_s", 0.0) for name, value in values.items()}
            samples = [Sample(name.replace("__", "."), value, self.at) for name, value in grown.items()]
            self._writer.samples(self.at, samples)

    def trains(self, seconds: int, memory: Iterable[Sample] = (), **series: float) -> None:
        self.event("train.phase", pid=PID, phase="train", step=self.step)
        for _ in range(seconds):
            self.at += 1.0
            self.step += 8
            self._writer.samples(self.at, [*_training(self.at, self.step), *_machine(self.at), *memory])
            if series:
                self.at -= 1.0
                self.seconds(1, **series)

    def ends(self, code: int = 0, signal: int | None = None) -> Path:
        self.event("script.exit", code=code, signal=signal)
        self.event("process.gone", pid=PID, name="python", rss_bytes=1 << 30)
        self.seconds(1, job__held_bytes=0.0)
        self.event("run.end")
        return self.close()

    def close(self) -> Path:
        self._writer.close()
        return self.path


def _training(at: float, step: int) -> Iterator[Sample]:
    yield Sample("train.steps_count", step, at)
    yield Sample("train.epoch_count", step // 100, at)
    yield Sample("train.step_s", 0.125, at)
    yield Sample("train.wait_ratio", 0.25, at)
    yield Sample("train.loss", 4.0 / (1 + step / 40), at, step=step)
    yield Sample("train.gradient_norm", 1.5, at, step=step)


def _machine(at: float) -> Iterator[Sample]:
    for name, value in {
        "host.memory_total_bytes": 32 * GIB,
        "host.memory_available_bytes": 20 * GIB,
        "job.memory_budget_bytes": 16 * GIB,
        "job.held_bytes": 4 * GIB,
        "job.cpu_s": 2 * (at - NOW),
        "job.threads_count": 12,
        "job.silent_s": 0.0,
    }.items():
        yield Sample(name, value, at)


def _own_start() -> float:
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    assert is_alive(os.getpid(), float(fields[19]))
    return float(fields[19])
