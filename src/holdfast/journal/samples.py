"""Rows and buckets of the record as samples, of the signals that are wanted."""

from __future__ import annotations

from collections.abc import Container, Iterator
from math import inf, isfinite, isnan, nan

from holdfast.journal.format import HIGH_FIRST, NO_CELL, SAW_NAN, STEP_SUFFIX, Bucket, Cell, Row
from holdfast.vocabulary import Sample

Columns = tuple[tuple[int, str, int | None], ...]


class Wanted:
    """Makes samples of records. Which columns are wanted is found out once for each set of names."""

    def __init__(self, names: Container[str] | None = None) -> None:
        self._names = names
        self._known: dict[tuple[str, ...], Columns] = {}

    def columns(self, names: tuple[str, ...]) -> Columns:
        """Where a signal's value stands, and the step it belongs to. A row may hold several readings of one signal."""
        found = self._known.get(names)
        if found is None:
            found = self._known[names] = tuple(
                column for column in columns_of(names) if self._names is None or column[1] in self._names
            )
        return found

    def samples(self, record: Row | Bucket, since: float = -inf) -> Iterator[Sample]:
        if record.at < since:
            return
        if isinstance(record, Bucket):
            for sample in _bucket_samples(record, self.columns(record.names)):
                if sample.at >= since:
                    yield sample
            return
        at, reasons, values = record.at, record.reasons, record.values
        for index, name, step_index in self.columns(record.names):
            value = values[index]
            reason = "" if value is not None else reasons.get(name, "")
            yield Sample(name, value, at, reason, None if step_index is None else _step(values[step_index]))


def columns_of(names: tuple[str, ...]) -> Columns:
    columns: list[tuple[int, str, int | None]] = []
    for index, name in enumerate(names):
        if index and name == names[index - 1] + STEP_SUFFIX:
            columns[-1] = (index - 1, names[index - 1], index)
        else:
            columns.append((index, name, None))
    return tuple(columns)


def _step(value: float | None) -> int | None:
    return int(value) if value is not None and isfinite(value) else None


def _bucket_samples(bucket: Bucket, columns: Columns) -> list[Sample]:
    """The first extreme at the bucket's start, the other in its middle, the last value at its end.

    An extreme that is the last value is told once, so that a counter keeps its slope.
    """
    start, end, cells = bucket.start, bucket.at, bucket.cells
    middle = (start + end) / 2
    first, between, last = [], [], []
    for index, name, step_index in columns:
        cell = cells[index]
        if not cell.tally:
            last.append(Sample(name, None, end, bucket.reasons.get(name, "")))
            continue
        steps = NO_CELL if step_index is None else cells[step_index]  # of the first and last reading
        early, late = in_order(cell)
        if cell.tally > 1:
            first.append(Sample(name, early, start, step=_step(in_order(steps)[0])))
            if late not in (early, cell.last) and not isnan(late):
                between.append(Sample(name, late, middle))
            if cell.flags & SAW_NAN and not isnan(cell.last) and not isnan(early):
                between.append(Sample(name, nan, middle))
        last.append(Sample(name, cell.last, end, step=_step(steps.last)))
    return first + between + last


def in_order(cell: Cell) -> tuple[float, float]:
    """The extremes, the one that came first before the other."""
    return (cell.high, cell.low) if cell.flags & HIGH_FIRST else (cell.low, cell.high)
