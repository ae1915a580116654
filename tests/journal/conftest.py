from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from holdfast.journal import JournalWriter
from holdfast.vocabulary import Sample


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


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path / "journal"


Record = Callable[[int], None]


@pytest.fixture
def record_for(directory: Path, clock: FakeClock) -> tuple[JournalWriter, Record]:
    """A writer and a way to let seconds pass: one row of three signals each, and upkeep as the watcher does it."""
    writer = JournalWriter(directory, "watcher", segment_s=100.0, keep_raw_s=100.0, bucket_s=10.0, clock=clock)

    def record(seconds: int) -> None:
        for _ in range(seconds):
            clock.now += 1.0
            second = clock.now % 1000.0
            writer.samples(clock.now, row(clock.now, [second, -second, 5.0]))
            writer.tend(clock.now)

    return writer, record
