"""How the record lies on disk: segment names, the segment header, checksummed frames and what is in them."""

from __future__ import annotations

import errno
import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from math import nan
from typing import NamedTuple

from holdfast.vocabulary import Event, Output

VERSION = 1
MAGIC = b"HOLDFAST"

# Every later version keeps this header, so that an old reader can say "newer" instead of "damaged".
_HEADER = struct.Struct("<8sIIdd")
_CRC = struct.Struct("<I")
HEADER_BYTES = _HEADER.size + _CRC.size

_FRAME = struct.Struct("<IIB")
FRAME_BYTES = _FRAME.size
MAX_PAYLOAD = 8 << 20
MAX_SEGMENT = 64 << 20
MAX_EVENT = 1 << 20
MAX_OUTPUT = 256 << 10
_RESYNC_BYTES = 256 << 10

SIGNALS, ROW, MISSING, EVENT, OUTPUT, BUCKET = range(1, 7)

SAW_NAN = 1
HIGH_FIRST = 2

_ID = struct.Struct("<H")
_AT = struct.Struct("<d")
_OUTPUT = struct.Struct("<dQB")
SUFFIX = ".seg"
STEP_SUFFIX = "_step_count"  # of the column right after a signal's own, which holds the step its value belongs to


class NewerJournal(Exception):
    """Written by a later Holdfast than this one."""

    def __init__(self, version: int, where: str) -> None:
        super().__init__(
            f"{where} was written by a newer Holdfast (journal format {version}, this one reads up to {VERSION}): "
            "upgrade Holdfast to read it"
        )
        self.version = version


class BadRecord(Exception):
    """The checksum holds, the content cannot be decoded: not the disk's doing, but that of the Holdfast that wrote or reads it."""


class Header(NamedTuple):
    """A segment stands for first_seq..its own number. `bucket_s` is 0 while it is whole."""

    first_seq: int
    created: float
    bucket_s: float


class Cell(NamedTuple):
    """One signal over one bucket; a tally of 0 means every reading was missing."""

    tally: int
    flags: int
    low: float
    high: float
    last: float


class Row(NamedTuple):
    at: float
    names: tuple[str, ...]
    values: Sequence[float | None]
    reasons: Mapping[str, str]


class Bucket(NamedTuple):
    start: float
    at: float
    rows: int
    names: tuple[str, ...]
    cells: list[Cell]
    reasons: Mapping[str, str]


Record = Row | Bucket | Event | Output


def segment_name(stream: str, seq: int) -> str:
    return f"{stream}-{seq:08d}{SUFFIX}"


def list_segments(directory: str) -> dict[str, list[int]]:
    """Stream -> its segment numbers, oldest first. A directory that is not there has none."""
    found: dict[str, list[int]] = {}
    try:
        names = os.listdir(directory)  # noqa: PTH208  (one system call a poll; pathlib costs ten times that)
    except OSError:
        return found
    for name in names:
        stream, dash, number = name.removesuffix(SUFFIX).rpartition("-")
        if dash and name.endswith(SUFFIX) and number.isascii() and number.isdigit() and len(number) >= 8:
            found.setdefault(stream, []).append(int(number))
    for numbers in found.values():
        numbers.sort()
    return found


def read_file(path: str, offset: int = 0, limit: int = MAX_SEGMENT) -> bytes:
    """Unbuffered and opened anew each time: NFS promises fresh content at open, and ESTALE is cured by it."""
    for attempt in (1, 2, 3):
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                return _read_all(fd, offset, limit)
            finally:
                os.close(fd)
        except OSError as error:
            if error.errno != errno.ESTALE or attempt == 3:
                raise
    return b""


def read_parts(path: str, offset: int) -> tuple[bytes, bytes]:
    """The header and what follows `offset`, of one and the same file: a rename may come in between two opens."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return _read_all(fd, 0, HEADER_BYTES), _read_all(fd, offset, MAX_SEGMENT)
    finally:
        os.close(fd)


def _read_all(fd: int, offset: int, limit: int) -> bytes:
    os.lseek(fd, offset, os.SEEK_SET)
    pieces: list[bytes] = []
    left = min(limit, max(0, os.fstat(fd).st_size - offset))
    while left > 0 and (piece := os.read(fd, min(left, 4 << 20))):
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def pack_header(header: Header) -> bytes:
    head = _HEADER.pack(MAGIC, VERSION, header.first_seq, header.created, header.bucket_s)
    return head + _CRC.pack(zlib.crc32(head))


def unpack_header(data: bytes, where: str) -> Header | None:
    """None when it is no header of ours. Its own checksum tells a flipped bit from a newer version."""
    if len(data) < HEADER_BYTES:
        return None
    magic, version, first_seq, created, bucket_s = _HEADER.unpack_from(data)
    (crc,) = _CRC.unpack_from(data, _HEADER.size)
    if magic != MAGIC or crc != zlib.crc32(data[: _HEADER.size]):
        return None
    if version > VERSION:
        raise NewerJournal(version, where)
    return Header(first_seq, created, bucket_s)


def frame(kind: int, payload: bytes) -> bytes:
    crc = zlib.crc32(payload, zlib.crc32(bytes((kind,))))
    return _FRAME.pack(crc, len(payload), kind) + payload


class Frames:
    """Iterates (kind, payload). Afterwards `offset` is where the good part ends, `fault` why: "", "torn", "damaged"."""

    def __init__(self, data: bytes, offset: int = 0) -> None:
        self.data = data
        self.offset = offset
        self.fault = ""

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        data, size = self.data, len(self.data)
        while self.offset < size:
            start = self.offset + FRAME_BYTES
            if start > size:
                self.fault = "torn"
                return
            crc, length, kind = _FRAME.unpack_from(data, self.offset)
            if length > MAX_PAYLOAD:
                self.fault = "damaged"
                return
            if start + length > size:
                self.fault = "torn"
                return
            if zlib.crc32(data[start - 1 : start + length]) != crc:
                self.fault = "damaged"
                return
            self.offset = start + length
            yield kind, data[start : start + length]

    def whole_frame_follows(self) -> bool:
        """A torn tail has nothing after it; a flipped length has the rest of the record."""
        data = self.data
        for at in range(self.offset + 1, min(len(data) - FRAME_BYTES, self.offset + _RESYNC_BYTES)):
            crc, length, kind = _FRAME.unpack_from(data, at)
            end = at + FRAME_BYTES + length
            if (
                SIGNALS <= kind <= BUCKET
                and length > 0
                and end <= len(data)
                and zlib.crc32(data[at + FRAME_BYTES - 1 : end]) == crc
            ):
                return True
        return False


class Schema:
    """A set of names within one segment, and how a row of it is packed."""

    __slots__ = ("_row", "full", "names", "number")

    def __init__(self, number: int, names: tuple[str, ...]) -> None:
        self.number = number
        self.names = names
        self.full = all_valid(len(names))
        self._row = row_struct(len(names))

    def frame(self) -> bytes:
        return frame(SIGNALS, _ID.pack(self.number) + json.dumps(self.names, separators=(",", ":")).encode())

    def row(self, at: float, valid: bytes, values: Sequence[float | None]) -> bytes:
        return frame(ROW, self._row.pack(self.number, at, valid, *values))


@lru_cache(maxsize=64)
def row_struct(count: int) -> struct.Struct:
    return struct.Struct(f"<Hd{(count + 7) // 8}s{count}d")


@lru_cache(maxsize=64)
def bucket_struct(count: int) -> struct.Struct:
    return struct.Struct(f"<HddI{count}I{count}B{3 * count}d")


@lru_cache(maxsize=64)
def all_valid(count: int) -> bytes:
    return ((1 << count) - 1).to_bytes((count + 7) // 8, "little")


def missing_frame(reasons: Mapping[str, str]) -> bytes:
    return frame(MISSING, json.dumps(reasons, separators=(",", ":")).encode())


def event_frame(event: Event) -> bytes:
    """Whatever the data is, something readable is kept of it."""
    try:
        text = json.dumps([event.kind, dict(event.data)], default=str, separators=(",", ":"))
        if len(text) > MAX_EVENT:
            text = json.dumps([event.kind, {"cut_short": text[: 64 << 10]}])
    except (TypeError, ValueError, RecursionError) as error:
        text = json.dumps([str(event.kind), {"not_kept": f"{type(error).__name__}: {error}"}])
    return frame(EVENT, _AT.pack(event.at) + text.encode())


def output_frame(at: float, stream: bytes, skipped: int, data: bytes | memoryview) -> bytes:
    return frame(OUTPUT, _OUTPUT.pack(at, skipped, len(stream)) + stream + data)


def bucket_frame(number: int, start: float, end: float, rows: int, cells: Sequence[Cell]) -> bytes:
    tallies, flags, lows, highs, lasts = zip(*cells, strict=True)
    packed = bucket_struct(len(cells)).pack(number, start, end, rows, *tallies, *flags, *lows, *highs, *lasts)
    return frame(BUCKET, packed)


class Decoder:
    """Frames of one segment -> records. Kinds it does not know are passed over."""

    def __init__(self) -> None:
        self._schemas: dict[int, tuple[str, ...]] = {}
        self._reasons: dict[str, str] = {}

    def take(self, kind: int, payload: bytes) -> Record | None:
        try:
            return self._take(kind, payload)
        except (struct.error, ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
            raise BadRecord(f"{type(error).__name__}: {error}") from None

    def _take(self, kind: int, payload: bytes) -> Record | None:
        if kind == ROW:
            return self._row(payload)
        if kind == BUCKET:
            return self._bucket(payload)
        if kind == EVENT:
            name, data = json.loads(payload[_AT.size :])
            return Event(name, _AT.unpack_from(payload)[0], data)
        if kind == OUTPUT:
            at, skipped, length = _OUTPUT.unpack_from(payload)
            body = _OUTPUT.size + length
            return Output(payload[_OUTPUT.size : body].decode(errors="replace"), at, payload[body:], skipped)
        if kind == SIGNALS:
            self._schemas[_ID.unpack_from(payload)[0]] = tuple(json.loads(payload[_ID.size :]))
        elif kind == MISSING:
            # A new mapping: records already handed out keep the reasons of their own time.
            self._reasons = {**self._reasons, **json.loads(payload)}
        return None

    def _row(self, payload: bytes) -> Row:
        names = self._schemas[_ID.unpack_from(payload)[0]]
        _, at, valid, *values = row_struct(len(names)).unpack(payload)
        if valid != all_valid(len(names)):
            bits = int.from_bytes(valid, "little")
            values = [value if bits >> index & 1 else None for index, value in enumerate(values)]
        return Row(at, names, values, self._reasons)

    def _bucket(self, payload: bytes) -> Bucket:
        names = self._schemas[_ID.unpack_from(payload)[0]]
        n = len(names)
        _, start, end, rows, *flat = bucket_struct(n).unpack(payload)
        parts = (flat[index : index + n] for index in range(0, 5 * n, n))
        cells = list(map(tuple.__new__, repeat(Cell), zip(*parts, strict=True)))  # a third of the time of Cell(…)
        return Bucket(start, end, rows, names, cells, self._reasons)


NO_CELL = Cell(0, 0, nan, nan, nan)
