"""The reading end, of a finished run or a live one. A cut at any byte yields everything before it."""

from __future__ import annotations

import heapq
from collections.abc import Container, Iterator, Sequence
from math import inf, nextafter
from typing import TYPE_CHECKING

from holdfast.journal.format import (
    BUCKET,
    EVENT,
    HEADER_BYTES,
    MISSING,
    OUTPUT,
    ROW,
    SIGNALS,
    BadRecord,
    Bucket,
    Decoder,
    Frames,
    Header,
    Record,
    Row,
    list_segments,
    read_file,
    read_parts,
    segment_name,
    unpack_header,
)
from holdfast.journal.samples import Wanted
from holdfast.vocabulary import Event, Output, Sample

if TYPE_CHECKING:
    from pathlib import Path

READINGS = frozenset((SIGNALS, MISSING, ROW, BUCKET))
EVERYTHING = READINGS | {EVENT, OUTPUT}


class Seen:
    """How far a stream was read: what to leave out of a segment that was thinned or merged under the reader."""

    def __init__(self) -> None:
        self.seq = -1
        self._times: dict[str, float] = {}
        self._floor: dict[str, float] = {}

    @property
    def given_until(self) -> float:
        return nextafter(self._floor["reading"], inf) if "reading" in self._floor else -inf

    def enter(self, rewritten: bool) -> None:
        self._floor = dict(self._times) if rewritten else {}

    def note(self, record: Record) -> None:
        self._times[_sort_of(record)] = record.at

    def has(self, record: Record) -> bool:
        return bool(self._floor) and record.at <= self._floor.get(_sort_of(record), -inf)


def _sort_of(record: Record) -> str:
    if isinstance(record, Event):
        return "event"
    return "output" if isinstance(record, Output) else "reading"


class Journal:
    """Reads lazily: a segment at a time is in memory."""

    def __init__(self, directory: Path) -> None:
        self._directory = str(directory)
        self._read: dict[str, frozenset[int]] = {}  # of each stream: the kinds of records that were read to the end
        self._faults: dict[str, dict[str, None]] = {}  # each once, as they were found
        for stream in self._streams():
            self._segments(stream)

    def events(self, *kinds: str) -> list[Event]:
        found = []
        for stream in self._streams():
            for record, _ in self._records(stream, frozenset((EVENT,))):
                if isinstance(record, Event) and (not kinds or record.kind in kinds):
                    found.append(record)
        return sorted(found, key=lambda event: event.at)

    def outer_events(self) -> list[Event]:
        """Those of the first and the last segment of each stream: how a run began, and how it ended."""
        found = []
        for stream in self._streams():
            segments = self._segments(stream)
            for record, _ in self._records(stream, frozenset((EVENT,)), [*segments[:1], *segments[1:][-1:]]):
                if isinstance(record, Event):
                    found.append(record)
        return sorted(found, key=lambda event: event.at)

    def samples(self, names: Container[str] | None = None, since: float = -inf) -> Iterator[Sample]:
        """All streams in the order of time. A thinned stretch gives its minima, maxima and last values."""
        streams = [self._records(stream, READINGS) for stream in self._streams()]
        wanted = Wanted(names)
        for record, given_until in heapq.merge(*streams, key=lambda given: given[0].at):
            if isinstance(record, (Row, Bucket)):
                yield from wanted.samples(record, max(since, given_until))

    def output(self, limit_bytes: int = 262144, since: float = -inf, until: float = inf) -> dict[str, bytes]:
        """The end of what was printed in that time, by stream name."""
        pieces: dict[str, list[Output]] = {}
        for stream in self._streams():
            tails: dict[str, Tail] = {}
            for record, _ in self._records(stream, frozenset((OUTPUT,))):
                if isinstance(record, Output) and since <= record.at < until:
                    tails.setdefault(record.stream, Tail(limit_bytes)).add(record)
            for name, tail in tails.items():
                pieces.setdefault(name, []).extend(tail.pieces)
        joined = {}
        for name, found in pieces.items():
            text = b"".join(piece.data for piece in sorted(found, key=lambda piece: piece.at))
            joined[name] = text[max(0, len(text) - limit_bytes) :]
        return joined

    @property
    def damage(self) -> list[str]:
        """What could not be read, a line each. What was not read yet is read for it: 60 MB take about half a second."""
        lines: list[str] = []
        for stream in self._streams():
            if unread := EVERYTHING - self._read.get(stream, frozenset()):
                for _ in self._records(stream, unread):
                    pass
            lines += self._faults.get(stream, {})
        return lines

    def _streams(self) -> list[str]:
        return sorted(list_segments(self._directory))

    def _segments(self, stream: str) -> list[tuple[int, Header | None]]:
        """Oldest first, without those that a merged one already stands for."""
        found: list[tuple[int, Header | None]] = []
        covered = inf
        for seq in reversed(list_segments(self._directory).get(stream, [])):
            if seq >= covered:
                continue
            name = segment_name(stream, seq)
            try:
                header = unpack_header(read_file(f"{self._directory}/{name}", limit=HEADER_BYTES), name)
            except OSError:
                header = None
            if header is not None:
                covered = min(covered, header.first_seq)
            found.append((seq, header))
        return found[::-1]

    def _records(
        self, stream: str, kinds: frozenset[int], some: Sequence[tuple[int, Header | None]] | None = None
    ) -> Iterator[tuple[Record, float]]:
        """Each record with the time before which its readings were given already. `some`: of these segments alone."""
        segments = self._segments(stream) if some is None else some
        seen = Seen()
        faults = self._faults.setdefault(stream, {})
        for seq, listed in segments:
            name = segment_name(stream, seq)
            try:
                data = read_file(f"{self._directory}/{name}")
            except FileNotFoundError:
                continue  # merged into a later one since
            except OSError as error:
                faults[f"{name}: not readable: {error.strerror}"] = None
                continue
            segment = Segment(data, name, newest=seq == segments[-1][0])
            seen.enter(rewritten=segment.header != listed)
            for record in segment.records(kinds):
                if not seen.has(record):
                    yield record, seen.given_until
                    seen.note(record)
            if segment.fault:
                faults[f"{name}: {segment.fault}"] = None
        if some is None:
            self._read[stream] = self._read.get(stream, frozenset()) | kinds


class Segment:
    """One segment's bytes -> records; afterwards `fault` is what a person should know, or empty."""

    def __init__(self, data: bytes, name: str, newest: bool) -> None:
        self._data = data
        self._newest = newest
        self.header = unpack_header(data, name)
        self.fault = ""

    def records(self, kinds: frozenset[int]) -> Iterator[Record]:
        if self.header is None:
            if len(self._data) >= HEADER_BYTES:
                self.fault = "damaged at byte 0, that segment is not readable"
            elif not self._newest:
                self.fault = f"cut short at byte {len(self._data)}, before its first record"
            return
        frames, decoder = Frames(self._data, HEADER_BYTES), Decoder()
        start = frames.offset
        try:
            for kind, payload in frames:
                if kind in kinds and (record := decoder.take(kind, payload)) is not None:
                    yield record
                start = frames.offset
        except BadRecord as error:
            self.fault = f"a whole record at byte {start} cannot be decoded ({error}): a bug of Holdfast's, no damage"
            return
        if frames.fault == "damaged" or (frames.fault == "torn" and frames.whole_frame_follows()):
            self.fault = f"damaged at byte {frames.offset}, the rest of that segment is not readable"
        elif frames.fault == "torn" and not self._newest:
            self.fault = f"cut short at byte {frames.offset}"


class Tail:
    """The last bytes of one stream, so that a day of printing is not held in memory."""

    def __init__(self, limit: int) -> None:
        self.pieces: list[Output] = []
        self._limit = limit
        self._size = 0

    def add(self, piece: Output) -> None:
        self.pieces.append(piece)
        self._size += len(piece.data)
        if self._size > 2 * self._limit + (1 << 20):
            kept = 0
            for index in range(len(self.pieces) - 1, -1, -1):
                kept += len(self.pieces[index].data)
                if kept >= self._limit:
                    del self.pieces[:index]
                    break
            self._size = kept


class Follower:
    """Gives what is new. Readings older than `since` are left out: a week of them would not fit a screen."""

    def __init__(self, directory: Path, since: float = -inf, names: Container[str] | None = None) -> None:
        self._directory = str(directory)
        self._since = since
        self._wanted = Wanted(names)
        self._streams: dict[str, Position] = {}

    def poll(self) -> list[Sample | Event | Output]:
        return sorted(self.new(), key=lambda one: one.at)

    def new(self) -> Iterator[Sample | Event | Output]:
        """The same, unsorted, with one segment at a time in memory."""
        for stream in self.streams():
            yield from stream

    def streams(self) -> list[Iterator[Sample | Event | Output]]:
        """What is new in each stream, by itself, in the order it was written."""
        return [self._new_of(records) for records in self.records()]

    def records(self) -> list[Iterator[tuple[Record, float]]]:
        """The same as records, each with the time before which its readings were given already."""
        listed = sorted(list_segments(self._directory).items())
        return [self._records_of(stream, numbers) for stream, numbers in listed]

    def _new_of(self, records: Iterator[tuple[Record, float]]) -> Iterator[Sample | Event | Output]:
        for record, since in records:
            if isinstance(record, (Event, Output)):
                yield record
            else:
                yield from self._wanted.samples(record, max(since, self._since))

    def _records_of(self, stream: str, numbers: Sequence[int]) -> Iterator[tuple[Record, float]]:
        position = self._streams.setdefault(stream, Position(self._directory, stream))
        for seq in numbers:
            if seq >= position.seen.seq:
                yield from position.advance(seq)


class Position:
    """Where a follower stands in one stream."""

    def __init__(self, directory: str, stream: str) -> None:
        self._directory = directory
        self._stream = stream
        self._header: Header | None = None
        self._offset = HEADER_BYTES
        self._decoder = Decoder()
        self.seen = Seen()

    def advance(self, seq: int) -> Iterator[tuple[Record, float]]:
        """New records of this segment, each with the time before which its readings were given already."""
        name = segment_name(self._stream, seq)
        path = f"{self._directory}/{name}"
        try:
            head, data = read_parts(path, self._offset)
            header = unpack_header(head, name)
            if header is None:
                return
            if seq != self.seen.seq or header != self._header:
                head, data = read_parts(path, HEADER_BYTES)
                header = unpack_header(head, name) or header
                self._enter(seq, header)
        except OSError:
            return
        yield from self._new(data)

    def _new(self, data: bytes) -> Iterator[tuple[Record, float]]:
        frames, base = Frames(data), self._offset
        try:
            for kind, payload in frames:
                record = self._decoder.take(kind, payload)
                self._offset = base + frames.offset
                if record is not None and not self.seen.has(record):
                    yield record, self.seen.given_until
                    self.seen.note(record)
        except BadRecord:
            return

    def _enter(self, seq: int, header: Header) -> None:
        self.seen.enter(rewritten=header.first_seq <= self.seen.seq)
        self.seen.seq, self._header = seq, header
        self._offset, self._decoder = HEADER_BYTES, Decoder()
