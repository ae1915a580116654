"""Old segments, made small: each signal's minimum, maximum, last and count over a stretch of time; events whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import isnan

from holdfast.journal.format import (
    EVENT,
    HEADER_BYTES,
    HIGH_FIRST,
    NO_CELL,
    OUTPUT,
    SAW_NAN,
    BadRecord,
    Bucket,
    Cell,
    Decoder,
    Frames,
    Header,
    NewerJournal,
    Row,
    Schema,
    bucket_frame,
    frame,
    missing_frame,
    pack_header,
    read_file,
    unpack_header,
)

TEMPORARY = ".tmp"


class Damaged(Exception):
    """Left as it is: rewriting it would hide what happened to it."""


def reduce_column(column: Iterable[float | None]) -> Cell:
    values = [value for value in column if value is not None]
    count = len(values)
    if not count:
        return NO_CELL
    last, flags = values[-1], 0
    total = sum(values)
    if total != total:  # noqa: PLR0124  (a NaN among them, or inf - inf)
        numbers = [value for value in values if not isnan(value)]
        if len(numbers) < count:
            flags = SAW_NAN
        if not numbers:
            return Cell(count, flags, last, last, last)
        values = numbers
    low, high = min(values), max(values)
    if low != high and values.index(high) < values.index(low):
        flags |= HIGH_FIRST
    return Cell(count, flags, low, high, last)


def join_cells(a: Cell, b: Cell) -> Cell:
    """`b` is the later one."""
    if not a.tally:
        return b
    if not b.tally:
        return a
    nan_seen = (a.flags | b.flags) & SAW_NAN
    if isnan(a.low) or isnan(b.low):
        kept = b if isnan(a.low) else a
        return Cell(a.tally + b.tally, nan_seen | kept.flags, kept.low, kept.high, b.last)
    low_later, high_later = b.low < a.low, b.high > a.high
    if low_later == high_later:
        order = (b.flags if low_later else a.flags) & HIGH_FIRST
    else:
        order = HIGH_FIRST if low_later else 0
    low, high = (b.low if low_later else a.low), (b.high if high_later else a.high)
    return Cell(a.tally + b.tally, nan_seen | order, low, high, b.last)


class Thinner:
    """Takes records in order and writes the frames of the thinned segment."""

    def __init__(self, bucket_s: float) -> None:
        self.bucket_s = bucket_s
        self.frames: list[bytes] = []
        self._schemas: dict[tuple[str, ...], Schema] = {}
        self._written_reasons: dict[str, str] = {}
        self._begin()

    def _begin(self) -> None:
        self._key: float | None = None
        self._start = self._end = 0.0
        self._rows = 0
        # By names and not one by one: reducing whole columns is what keeps a segment within its 60 ms.
        self._blocks: dict[tuple[str, ...], list[Sequence[float | None]]] = {}
        self._cells: dict[str, Cell] = {}
        self._reasons: Mapping[str, str] = {}

    def take(self, record: Row | Bucket) -> None:
        start = record.at if isinstance(record, Row) else record.start
        key = start // self.bucket_s
        if key != self._key:
            self.flush()
            self._key, self._start = key, start
        self._end, self._reasons = record.at, record.reasons
        if isinstance(record, Row):
            self._rows += 1
            block = self._blocks.pop(record.names, [])
            block.append(record.values)
            self._blocks[record.names] = block
        else:
            self._rows += record.rows
            self._join(zip(record.names, record.cells, strict=True))

    def _join(self, cells: Iterable[tuple[str, Cell]]) -> None:
        mine = self._cells
        for name, cell in cells:
            known = mine.get(name)
            mine[name] = cell if known is None else join_cells(known, cell)

    def flush(self) -> None:
        if self._key is None:
            return
        for names, rows in self._blocks.items():
            self._join(zip(names, map(reduce_column, zip(*rows, strict=True)), strict=True))
        names = tuple(sorted(self._cells))
        schema = self._schemas.get(names)
        if schema is None:
            schema = self._schemas[names] = Schema(len(self._schemas), names)
            self.frames.append(schema.frame())
        self._write_reasons()
        cells = [self._cells[name] for name in names]
        self.frames.append(bucket_frame(schema.number, self._start, self._end, self._rows, cells))
        self._begin()

    def _write_reasons(self) -> None:
        changed = {}
        for name, cell in self._cells.items():
            reason = self._reasons.get(name, "")
            if not cell.tally and reason != self._written_reasons.get(name, ""):
                changed[name] = reason
        if changed:
            self._written_reasons.update(changed)
            self.frames.append(missing_frame(changed))


def thinned(segments: Sequence[bytes], bucket_s: float) -> tuple[list[bytes], bool]:
    """The frames that stand for these segments, and whether there was anything to thin."""
    thinner = Thinner(bucket_s)
    shrunk = False
    for data in segments:
        frames, decoder = Frames(data, HEADER_BYTES), Decoder()
        try:
            for kind, payload in frames:
                if kind in (EVENT, OUTPUT):
                    thinner.frames.append(frame(kind, payload))
                    continue
                record = decoder.take(kind, payload)
                if isinstance(record, (Row, Bucket)):
                    shrunk = True
                    thinner.take(record)
        except BadRecord as error:
            raise Damaged(str(error)) from None
        if frames.fault == "damaged":
            raise Damaged(f"at byte {frames.offset}")
    thinner.flush()
    return thinner.frames, shrunk


def rewrite(paths: Sequence[str], bucket_s: float, created: float) -> int | None:
    """Thins the segments into the last one's name; the size, or None where there was nothing to thin.

    Between rename and unlink both are there: first_seq tells a reader which to leave out.
    """
    segments = [read_file(path) for path in paths]
    headers = []
    for path, data in zip(paths, segments, strict=True):
        try:
            headers.append(unpack_header(data, path))
        except NewerJournal as error:
            raise Damaged(str(error)) from None
    first = headers[0]
    if first is None or None in headers:
        raise Damaged("no header")
    frames, shrunk = thinned(segments, bucket_s)
    if not shrunk and len(paths) == 1:
        return None
    data = b"".join((pack_header(Header(first.first_seq, created, bucket_s)), *frames))
    replace(paths[-1], data)
    for path in paths[:-1]:
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108
    return len(data)


def replace(path: str, data: bytes) -> None:
    temporary = path + TEMPORARY
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(temporary, path)  # noqa: PTH104
    except OSError:
        with suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise
    sync_directory(os.path.dirname(path))  # noqa: PTH120


def write_all(fd: int, data: bytes) -> None:
    """One system call, but for a full disk, which takes a part and fails on the rest."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])


def sync_directory(directory: str) -> None:
    with suppress(OSError):
        fd = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
