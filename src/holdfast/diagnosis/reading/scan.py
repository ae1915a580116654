"""A log of any size, read once in bounded memory: its beginning, its end, and what looks like trouble between.

A needle is looked for with bytes.find (about 2 GB/s each where it was measured, two cores); one regular expression with
all of them as alternatives ran at 50 to 200 MB/s.
"""

from __future__ import annotations

import codecs
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO, Protocol

from holdfast.diagnosis.characters import UTF16

CHUNK = 4 << 20
HEAD = 128 << 10
TAIL = 512 << 10
BEFORE, AFTER = 3 << 10, 6 << 10  # around a hit: the frames above an error, the message below it
HITS = 6  # of one needle in one chunk, from its start and from its end
FIRST_REGIONS, LAST_REGIONS = 60, 120
# What ends a run stands at the end, which is read in full; these find what came long before it.
NEEDLES = (
    b"Traceback (most",
    b"Error",
    b" error",
    b"xception",
    b"illed",
    b"ailed",
    b"f memory",
    b"NCCL WARN",
    b"Xid",
    b" nan",
)


@dataclass(frozen=True, slots=True)
class Piece:
    data: bytes
    first_line: int  # its number in the log


@dataclass(frozen=True, slots=True)
class Excerpt:
    pieces: tuple[Piece, ...]
    bytes_read: int
    whole: bool  # nothing was left out


class Readable(Protocol):
    def read(self, size: int, /) -> bytes: ...


class _FromUtf16:
    """A log of PowerShell's as UTF-8, so that the needles are found in it."""

    def __init__(self, first: bytes, stream: Readable) -> None:
        self._first, self._stream = first, stream
        self._decoder = codecs.getincrementaldecoder("utf-16")("replace")

    def read(self, size: int, /) -> bytes:
        raw, self._first = self._first or self._stream.read(size + 4), b""  # never half a character alone
        return self._decoder.decode(raw, final=not raw).encode("utf-8", "replace")


def excerpt(stream: BinaryIO) -> Excerpt:
    """All of a short log; of a long one the parts that can matter."""
    first = _filled(stream, CHUNK)
    return _excerpt(first, stream) if not first.startswith(UTF16) else _recoded(_FromUtf16(first, stream))


def _recoded(stream: Readable) -> Excerpt:
    return _excerpt(_filled(stream, CHUNK), stream)


def _excerpt(first: bytes, stream: Readable) -> Excerpt:
    if len(first) < CHUNK:
        return Excerpt((Piece(first, 1),), len(first), True)
    early: list[Piece] = [Piece(_whole_lines(first[:HEAD]), 1)]
    late: deque[Piece] = deque(maxlen=LAST_REGIONS)
    chunk, line, read, tail = first, 1, len(first), Piece(b"", 1)
    while chunk:
        following = _filled(stream, CHUNK)
        if not following:
            tail = _tail(chunk, line, TAIL)
        for piece in _regions(chunk, line):
            if len(early) < FIRST_REGIONS:
                early.append(piece)
            else:
                late.append(piece)
        carried = _carried(chunk) if following else b""
        line += chunk.count(b"\n", 0, len(chunk) - len(carried))
        read += len(following)
        chunk = carried + following if following else b""
    pieces = _without_overlap([*early, *late, tail])
    return Excerpt(tuple(pieces), read, False)


def _filled(stream: Readable, size: int) -> bytes:
    parts, left = [], size
    while left > 0:
        part = stream.read(left)
        if not part:
            break
        parts.append(part)
        left -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def _carried(chunk: bytes) -> bytes:
    """The last bytes again, from a line's start on, so that no region is cut at a border between chunks."""
    start = chunk.find(b"\n", len(chunk) - AFTER) + 1
    return chunk[start:] if 0 < start < len(chunk) else b""


def _whole_lines(data: bytes) -> bytes:
    end = data.rfind(b"\n")
    return data[: end + 1] if end >= 0 else data


def _tail(chunk: bytes, line: int, size: int) -> Piece:
    start = chunk.find(b"\n", max(0, len(chunk) - size)) + 1 if len(chunk) > size else 0
    return Piece(chunk[start:], line + chunk.count(b"\n", 0, start))


def _regions(chunk: bytes, line: int) -> Iterator[Piece]:
    counted, number, end = 0, line, 0
    for hit in sorted(_hits(chunk)):
        if hit < end - AFTER // 2:
            continue  # it lies well inside the region before
        start = max(end, chunk.rfind(b"\n", 0, max(0, hit - BEFORE)) + 1, hit - 2 * BEFORE)
        stop = chunk.find(b"\n", min(len(chunk), hit + AFTER))
        end = min(len(chunk) if stop < 0 else stop + 1, hit + 2 * AFTER)
        number += chunk.count(b"\n", counted, start)
        counted = start
        yield Piece(chunk[start:end], number)


def _hits(chunk: bytes) -> set[int]:
    found = set()
    for needle in NEEDLES:
        at = chunk.find(needle)
        for _ in range(HITS):
            if at < 0:
                break
            found.add(at)
            at = chunk.find(needle, at + len(needle))
        if at < 0:
            continue
        last = len(chunk)
        for _ in range(HITS):
            last = chunk.rfind(needle, at, last)
            if last < 0:
                break
            found.add(last)
    return found


def _without_overlap(pieces: list[Piece]) -> list[Piece]:
    """In the log's order; what two pieces share is said once."""
    kept: list[Piece] = []
    next_line = 0
    for piece in sorted(pieces, key=lambda piece: piece.first_line):
        skip = next_line - piece.first_line
        data = piece.data
        if skip > 0:
            lines = data.split(b"\n", skip)
            if len(lines) <= skip:
                continue
            data = lines[skip]
        first = max(piece.first_line, next_line)
        kept.append(Piece(data, first))
        next_line = first + data.count(b"\n")
    return kept
