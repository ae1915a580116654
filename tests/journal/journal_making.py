"""Rows and clocks for the journal's tests."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from holdfast.journal import JournalWriter
from holdfast.vocabulary import Event, Output, Sample


class FakeClock:
    def __init__(self, now: float = 1_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def row(at: float, values: Sequence[float | None], reason: str = "") -> list[Sample]:
    return [
        Sample(f"signal.{index}_ratio", value, at, reason if value is None else "")
        for index, value in enumerate(values)
    ]


def small_journal(directory: Path) -> list[Sample | Event | Output]:
    """One segment with every kind of record, and what a reader must find in it, in order."""
    writer = JournalWriter(directory, "watcher")
    told: list[Sample | Event | Output] = []
    for step in range(4):
        at = 100.0 + step
        samples = row(at, [float(step), None if step % 2 else 2.0, -1.5], f"reason {step}")
        event = Event("step", at, {"number": step})
        piece = Output("stdout", at, f"line {step}\n".encode())
        writer.samples(at, samples)
        writer.event(event)
        writer.output(piece)
        told += [*samples, event, piece]
    writer.close()
    return told


class Recorder:
    """A writer on a fake clock: a second is one row and one turn of upkeep."""

    def __init__(self, directory: Path, **options: float) -> None:
        self.clock = FakeClock()
        settings: dict[str, float] = {"segment_s": 100.0, "keep_raw_s": 100.0, "bucket_s": 10.0, **options}
        self.writer = JournalWriter(directory, "watcher", clock=self.clock, **settings)  # type: ignore[arg-type]
        self.told: list[Sample] = []

    def seconds(self, count: int) -> None:
        for _ in range(count):
            self.clock.now += 1.0
            self.row([self.clock.now - 1_000_000.0, -(self.clock.now % 37.0), 5.0])
            self.writer.tend(self.clock.now)

    def row(self, values: Sequence[float | None], reason: str = "") -> None:
        samples = row(self.clock.now, values, reason)
        self.writer.samples(self.clock.now, samples)
        self.told += samples
