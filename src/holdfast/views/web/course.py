"""One signal over a run, as a chart draws it: so few points that a page opens at once, with every minimum and maximum."""

from __future__ import annotations

import base64
import sys
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain
from math import inf, isfinite, nan
from typing import Any

from holdfast.journal.format import HIGH_FIRST, SAW_NAN, Bucket, Cell, Row
from holdfast.journal.samples import Wanted, in_order

POINTS = 1500  # of a signal: more than a screen has pixels for
APART_S = 0.5  # a row of a second holds a loss that was read twice, with one time for both
NOT_FINITE = 200  # moments at which a value was NaN or infinite


class Course:
    """Missing values are NaN here: a gap. A value that was read as NaN is a moment in `not_finite` as well."""

    def __init__(self) -> None:
        self.times: list[float] = []
        self.values: list[float] = []
        self.not_finite: list[float] = []
        self.last: float | None = None
        self.highest: float | None = None

    def extend(self, times: Sequence[float], values: Sequence[float]) -> None:
        if self.times and times and times[0] < self.times[-1]:
            self._insert(times, values)
        else:
            self.times += times
            self.values += values
        if len(self.times) > 8 * POINTS:
            self.times, self.values = thinned(self.times, self.values, POINTS)
        finite = values if isfinite(sum(values)) else [value for value in values if isfinite(value)]
        if finite:
            self.last, highest = finite[-1], max(finite)
            self.highest = highest if self.highest is None else max(self.highest, highest)

    def note_not_finite(self, times: Iterable[float]) -> None:
        self.not_finite += times
        if len(self.not_finite) > 2 * NOT_FINITE:
            self.not_finite = [*self.not_finite[:NOT_FINITE], self.not_finite[-1]]

    def _insert(self, times: Sequence[float], values: Sequence[float]) -> None:
        """Another process wrote them, or a slow probe: they are older than what is here."""
        both = sorted(
            zip(chain(self.times, times), chain(self.values, values), strict=True), key=lambda point: point[0]
        )
        self.times, self.values = [at for at, _ in both], [value for _, value in both]


class Courses:
    """All signals of a run. Takes rows and buckets as they come; a bucket is its two extremes."""

    def __init__(self) -> None:
        self.of: dict[str, Course] = {}
        self._wanted = Wanted()

    def take(self, records: Iterable[tuple[Row | Bucket, float]]) -> dict[str, tuple[list[float], list[float]]]:
        """Returns what was new, by signal. Column by column: a sample at a time would take five times as long."""
        blocks: dict[tuple[type, tuple[str, ...]], list[Row | Bucket]] = {}
        for record, since in records:
            if (record.at if isinstance(record, Row) else record.start) >= since:
                blocks.setdefault((type(record), record.names), []).append(record)
        new: dict[str, tuple[list[float], list[float]]] = {}
        for (kind, names), block in blocks.items():
            moments = _times(block)
            again = Counter(name for _, name, _ in self._wanted.columns(names))
            columns = list(zip(*(one.cells if isinstance(one, Bucket) else one.values for one in block), strict=True))
            for index, name, _ in self._wanted.columns(names):
                course = self.of.setdefault(name, Course())
                values = _extremes(columns[index]) if kind is Bucket else _plain(columns[index])
                again[name] -= 1
                times = [at - again[name] * APART_S for at in moments] if again[name] else moments
                course.note_not_finite(_moments_not_finite(block, columns[index], kind))
                course.extend(times, values)
                found = new.setdefault(name, ([], []))
                found[0].extend(times)
                found[1].extend(values)
        return new

    def has(self, name: str) -> bool:
        return name in self.of and self.of[name].last is not None


def _times(block: Sequence[Row | Bucket]) -> list[float]:
    if isinstance(block[0], Row):
        return [row.at for row in block]
    return list(chain.from_iterable((one.start, one.at) for one in block if isinstance(one, Bucket)))


def _plain(column: Sequence[Any]) -> list[float]:
    return [nan if value is None else value for value in column] if None in column else list(column)


def _extremes(column: Sequence[Cell]) -> list[float]:
    """Written out: a day of a hundred signals has three hundred thousand of them."""
    if not all(cell[0] for cell in column):
        return [value for cell in column for value in (in_order(cell) if cell.tally else (nan, nan))]
    return [
        value for _, flags, low, high, _ in column for value in ((high, low) if flags & HIGH_FIRST else (low, high))
    ]


def _moments_not_finite(block: Sequence[Row | Bucket], column: Sequence[Any], kind: type) -> list[float]:
    if kind is Bucket:
        return [one.at for one, cell in zip(block, column, strict=True) if cell.flags & SAW_NAN]
    if None not in column and isfinite(sum(column)):
        return []
    return [row.at for row, value in zip(block, column, strict=True) if value is not None and not isfinite(value)]


def thinned(times: Sequence[float], values: Sequence[float], points: int) -> tuple[list[float], list[float]]:
    """At most so many: the lowest and the highest of each stretch of time, in their order, and the very last."""
    if len(times) <= points:
        return list(times), list(values)
    if values.count(values[0]) == len(values):  # a limit
        return [times[0], times[-1]], [values[0], values[-1]]
    whole = isfinite(sum(values))
    begin, end = times[0], times[-1]
    slots = max(1, (points - 1) // 2)
    width = (end - begin) / slots or inf
    kept_times: list[float] = []
    kept_values: list[float] = []
    start, count = 0, len(times)
    while start < count:
        border = begin + (int((times[start] - begin) / width) + 1) * width
        stop = max(start + 1, bisect_left(times, border, start))
        for index in _two(values, start, stop, whole):
            kept_times.append(times[index])
            kept_values.append(values[index])
        start = stop
    if kept_times[-1] != end:
        kept_times.append(end)
        kept_values.append(values[-1])
    return kept_times, kept_values


def _two(values: Sequence[float], start: int, stop: int, whole: bool) -> tuple[int, ...]:
    """Where the lowest and the highest stand. A stretch in which nothing was read stays a gap."""
    part = values[start:stop] if whole else [value for value in values[start:stop] if isfinite(value)]
    if not part:
        return (start,)
    low, high = values.index(min(part), start, stop), values.index(max(part), start, stop)
    return (low,) if low == high else (min(low, high), max(low, high))


def packed(numbers: Iterable[float]) -> str:
    """Little-endian 32-bit floats in base64: typed arrays in the browser, which need no parsing."""
    floats = array("f", numbers)
    if sys.byteorder != "little":
        floats.byteswap()
    return base64.b64encode(floats.tobytes()).decode()
