"""A run's record as Parquet: all samples in one long table, all events in a second file. Needs the extra `parquet`.

One row group at a time is in memory.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.journal import Journal
from holdfast.views.log_text import finite
from holdfast.views.why_json import masked
from holdfast.vocabulary import Event, Sample

ROWS = 65_536  # of a row group: some MiB
VERDICT_KEY = "holdfast.verdict"
TIME = pa.timestamp("us", tz="UTC")
SAMPLES = pa.schema(
    [
        ("run", pa.string()), ("at", TIME), ("signal", pa.string()), ("value", pa.float64()), ("step", pa.int64()),
        ("reason", pa.string()),
    ]
)  # fmt: skip
EVENTS = pa.schema([("run", pa.string()), ("at", TIME), ("kind", pa.string()), ("data", pa.string())])

T = TypeVar("T")


def write(run: str, journal: Journal, verdict: str, path: Path) -> tuple[int, int, Path]:
    """Returns how many samples and events were written, and where the events are. `verdict` is JSON, kept in both."""
    beside = events_path(path)
    samples = _write(path, SAMPLES, verdict, (_sample_columns(run, rows) for rows in _groups(journal.samples())))
    events = _write(beside, EVENTS, verdict, (_event_columns(run, rows) for rows in _groups(journal.events())))
    return samples, events, beside


def events_path(path: Path) -> Path:
    return path.with_name(f"{path.name.removesuffix('.parquet')}.events.parquet")


def _write(path: Path, schema: Any, verdict: str, groups: Iterable[Sequence[list[Any]]]) -> int:
    schema, rows = schema.with_metadata({VERDICT_KEY: verdict}), 0
    with _made_whole(path) as part, pq.ParquetWriter(part, schema, compression="zstd") as writer:
        for columns in groups:
            arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
            writer.write_table(pa.Table.from_arrays(arrays, schema=schema))
            rows += len(columns[0])
    return rows


@contextmanager
def _made_whole(path: Path) -> Iterator[Path]:
    """What was there before stays until all is written."""
    part = path.with_name(f".{path.name}.part-{os.getpid()}")
    try:
        yield part
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _sample_columns(run: str, samples: Sequence[Sample]) -> list[list[Any]]:
    return [
        [run] * len(samples),
        [_microseconds(sample.at) for sample in samples],
        [sample.name for sample in samples],
        [sample.value for sample in samples],
        [sample.step for sample in samples],
        [sample.reason or None for sample in samples],
    ]


def _event_columns(run: str, events: Sequence[Event]) -> list[list[Any]]:
    return [
        [run] * len(events),
        [_microseconds(event.at) for event in events],
        [event.kind for event in events],
        [json.dumps(masked(finite(event.data))) for event in events],
    ]


def _microseconds(at: float) -> int:
    return round(at * 1e6)


def _groups(records: Iterable[T]) -> Iterator[list[T]]:
    given = iter(records)
    while group := list(islice(given, ROWS)):
        yield group
