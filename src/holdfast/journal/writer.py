"""The writing end of one stream. A full, vanished or read-only disk costs records, never an exception."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from holdfast.journal.format import (
    MAX_OUTPUT,
    STEP_SUFFIX,
    Header,
    Schema,
    event_frame,
    missing_frame,
    output_frame,
    pack_header,
)
from holdfast.journal.retention import Closed, Retention
from holdfast.journal.thinning import write_all
from holdfast.vocabulary import Event, Output, Sample

if TYPE_CHECKING:
    from pathlib import Path

_flush = getattr(os, "fdatasync", os.fsync)

RETRY_S = 1.0
LOOK_S = 1.0
# Keeps the thinning of a segment of many tiny rows within its 60 ms.
SEGMENT_RECORDS = 8192
MAX_SCHEMAS = 4096
MAX_SIGNALS = 100_000
MAX_SEGMENT_BYTES = 32 << 20


class Gap:
    """A stretch that could not be written, and the first reason why."""

    __slots__ = ("reason", "records", "since", "until")

    def __init__(self, reason: str, at: float) -> None:
        self.records = 0
        self.since = self.until = at
        self.reason = reason

    def frame(self, at: float) -> bytes:
        data = {"records": self.records, "from": self.since, "until": self.until, "reason": self.reason}
        return event_frame(Event("journal.gap", at, data))


class JournalWriter:
    # The segment being written; _offset is where its good part ends.
    _fd: int
    _offset: int
    _records: int
    _unsynced: int
    _created: float
    _last_at: float
    _row_at: float | None
    _schemas: dict[tuple[str, ...], Schema]
    _reasons: dict[str, str]

    def __init__(
        self,
        directory: Path,
        stream: str,
        *,
        segment_bytes: int = 1 << 20,
        segment_s: float = 900.0,
        keep_raw_s: float = 900.0,
        bucket_s: float = 30.0,
        max_bytes: int = 160 << 20,
        keep_segments: tuple[int, int] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.lost_records = 0
        self._directory = str(directory)
        self._segment_bytes = min(segment_bytes, MAX_SEGMENT_BYTES)
        # Where segments are counted, a quiet stream must not use them up by age.
        self._segment_s = segment_s if keep_segments is None else float("inf")
        self._segment_records = SEGMENT_RECORDS if keep_segments is None else 1 << 30
        self._clock = clock
        self._retention = Retention(
            self._directory,
            stream,
            keep_raw_s=keep_raw_s,
            bucket_s=bucket_s,
            max_bytes=max_bytes,
            keep_segments=keep_segments,
        )
        self._gap: Gap | None = None
        self._tried = self._looked = float("-inf")
        self._closed = False
        self._forget_segment()
        with suppress(OSError):
            os.makedirs(self._directory, mode=0o700, exist_ok=True)  # noqa: PTH103
        self._retention.inherit()
        self._seq = self._retention.next_seq()

    def samples(self, at: float, samples: Sequence[Sample]) -> None:
        """One row. The set of names may differ from the row before."""
        if not samples or not self._ready(at):
            return
        samples = _with_step_columns(samples)
        names = tuple([sample.name for sample in samples])
        known = self._schemas.get(names)
        schema = known or Schema(len(self._schemas), names)
        changed: dict[str, str] = {}
        try:
            blob = schema.row(at, schema.full, [sample.value for sample in samples])
        except (struct.error, OverflowError, TypeError):
            valid, values, changed = self._with_missing(samples)
            blob = schema.row(at, valid, values)
            if changed:
                blob = missing_frame(changed) + blob
        if known is None:
            if len(names) > MAX_SIGNALS:
                self.lost_records += 1
                return
            blob = schema.frame() + blob
        if self._write(blob, at):
            self._row_at = at
            self._schemas[names] = schema
            self._reasons.update(changed)

    def event(self, event: Event) -> None:
        if self._ready(event.at):
            self._write(event_frame(event), event.at)

    def output(self, piece: Output) -> None:
        stream = piece.stream.encode(errors="replace")[:255]
        skipped = piece.skipped_bytes
        view = memoryview(piece.data)
        for start in range(0, max(len(view), 1), MAX_OUTPUT):
            if self._ready(piece.at):
                part = view[start : start + MAX_OUTPUT]
                self._write(output_frame(piece.at, stream, max(skipped, 0), part), piece.at)
            skipped = 0

    def sync(self) -> None:
        if self._fd < 0 or not self._unsynced:
            return
        try:
            _flush(self._fd)
            self._unsynced = 0
        except OSError as error:
            # The kernel forgets the pages it could not write, so what is in this segment since is in doubt.
            self._lose(error, self._unsynced, self._last_at, self._last_at)
            self._abandon()

    def tend(self, now: float) -> None:
        """Thins, merges or drops at most one thing."""
        dropped = self._retention.tend(now, self._offset)
        if dropped is not None and not self._closed:
            self.event(dropped)

    def close(self) -> None:
        if self._closed:
            return
        if self._gap is not None:
            self._tried = float("-inf")
            if self._ready(self._gap.until, records=0):
                self._write(b"", self._gap.until, records=0)
        self.sync()
        self._abandon()
        self._closed = True

    def _with_missing(self, samples: Sequence[Sample]) -> tuple[bytes, list[float], dict[str, str]]:
        bits = 0
        values: list[float] = []
        changed: dict[str, str] = {}
        for index, sample in enumerate(samples):
            reason = sample.reason
            if sample.value is not None:
                try:
                    values.append(float(sample.value))
                    bits |= 1 << index
                    continue
                except (TypeError, ValueError, OverflowError):
                    reason = f"not a number that fits: {type(sample.value).__name__}"
            values.append(0.0)
            if self._reasons.get(sample.name, "") != reason:
                changed[sample.name] = reason
        return bits.to_bytes((len(samples) + 7) // 8, "little"), values, changed

    def _ready(self, at: float, records: int = 1) -> bool:
        """An open segment with room, or the record is counted as lost."""
        now = self._clock()
        if self._gap is None and self._fd >= 0 and not self._full(now) and abs(now - self._looked) < LOOK_S:
            return True
        if self._closed or (self._gap is not None and abs(now - self._tried) < RETRY_S):
            self._count_lost(1, at, at)
            return False
        self._tried = now
        try:
            self._look(now)
            if self._fd >= 0 and self._full(now):
                self.sync()
                self._abandon()
            if self._fd < 0:
                self._open(now)
        except OSError as error:
            self._lose(error, records, at, at)
            return False
        return True

    def _full(self, now: float) -> bool:
        return bool(self._records) and (
            self._offset >= self._segment_bytes
            or self._records >= self._segment_records
            or abs(now - self._created) >= self._segment_s
            or len(self._schemas) >= MAX_SCHEMAS
        )

    def _look(self, now: float) -> None:
        """A deleted file takes writes without a word."""
        self._looked = now
        if self._fd >= 0 and os.fstat(self._fd).st_nlink == 0:
            error = FileNotFoundError(2, "the segment was deleted")
            self._lose(error, self._records, self._created, self._last_at)
            self._abandon(gone=True)

    def _open(self, now: float) -> None:
        # The run's own folder is not made again: who deleted it meant it.
        with suppress(FileExistsError):
            os.mkdir(self._directory, 0o700)  # noqa: PTH102
        path = self._retention.path(self._seq)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        try:
            fd = os.open(path, flags, 0o600)
        except FileExistsError:
            self._seq += 1
            raise
        header = pack_header(Header(self._seq, now, 0.0))
        try:
            write_all(fd, header)
        except OSError:
            os.close(fd)
            with suppress(OSError):
                os.unlink(path)  # noqa: PTH108
            raise
        self._fd, self._offset, self._created = fd, len(header), now
        with suppress(OSError):
            self._retention.drop_middle(open_segments=1)

    def _write(self, blob: bytes, at: float, records: int = 1) -> bool:
        if self._gap is not None:
            # In one piece with the record: on a nearly full disk the small event alone would fit, again and again.
            blob = self._gap.frame(at) + blob
        try:
            write_all(self._fd, blob)
        except OSError as error:
            self._lose(error, records, at, at)
            self._cut()
            return False
        self._gap = None
        self._offset += len(blob)
        self._records += 1
        self._unsynced += 1
        self._last_at = at
        return True

    def _cut(self) -> None:
        try:
            os.ftruncate(self._fd, self._offset)
        except OSError:
            self._abandon()

    def _lose(self, error: OSError, records: int, since: float, until: float) -> None:
        if self._gap is None:
            self._gap = Gap(error.strerror or str(error), since)
            self._tried = self._clock()
        self._count_lost(records, since, until)

    def _count_lost(self, records: int, since: float, until: float) -> None:
        self.lost_records += records
        if self._gap is not None:
            self._gap.records += records
            self._gap.since = min(self._gap.since, since)
            self._gap.until = max(self._gap.until, until)

    def _abandon(self, gone: bool = False) -> None:
        """No more is written to this segment; the next record opens a new one."""
        if self._fd < 0:
            return
        with suppress(OSError):
            os.close(self._fd)
        if not gone:
            last_at = self._last_at if self._row_at is None else self._row_at
            self._retention.add(Closed(self._seq, self._offset, last_at))
        self._seq += 1
        self._forget_segment()

    def _forget_segment(self) -> None:
        self._fd = -1
        self._offset = self._records = self._unsynced = 0
        self._created = self._last_at = 0.0
        self._row_at = None
        self._schemas = {}
        self._reasons = {}


def _with_step_columns(samples: Sequence[Sample]) -> Sequence[Sample]:
    if all(sample.step is None for sample in samples):
        return samples
    columns = []
    for sample in samples:
        columns.append(sample)
        if sample.step is not None:
            columns.append(Sample(sample.name + STEP_SUFFIX, sample.step, sample.at))
    return columns
