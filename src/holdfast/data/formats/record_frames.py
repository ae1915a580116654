"""The records of a TFRecord file, in blocks of whole ones. Stretches of one length are looked at together."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import BinaryIO, NamedTuple

import numpy as np

from holdfast.data.formats.checksums import HEAD_BYTES, TAIL_BYTES, are_right, is_right
from holdfast.data.formats.contract import PART_BYTES, Array, Unreadable

BLOCK_BYTES = PART_BYTES // 2
LONGEST_RECORD = 1 << 30
AROUND_BYTES = HEAD_BYTES + TAIL_BYTES
FEW = 8  # records, of which each is looked at alone


class Stretch(NamedTuple):
    """Records of one length, one after the other."""

    begin: int  # of the first one's head
    length: int
    records: int

    @property
    def size(self) -> int:
        return self.length + AROUND_BYTES

    @property
    def end(self) -> int:
        return self.begin + self.records * self.size


@dataclass(frozen=True)
class Frames:
    """Their lengths were looked at; the checksums of their contents are when they are asked for."""

    content: bytes
    stretches: list[Stretch]
    offset: int  # in the file

    def rows(self, stretch: Stretch) -> Array:
        """Records × bytes, with what stands around each."""
        count = stretch.records * stretch.size
        return np.frombuffer(self.content, np.uint8, count, stretch.begin).reshape(stretch.records, stretch.size)

    def checked(self) -> tuple[list[Stretch], Unreadable | None]:
        """The records up to the first that does not match its checksum, and that."""
        for number, stretch in enumerate(self.stretches):
            if stretch.records > FEW and are_right(self.rows(stretch)):
                continue
            for place, record in enumerate(self._records_of(stretch)):
                behind = stretch.begin + (place + 1) * stretch.size
                if not is_right(record, self.content[behind - TAIL_BYTES : behind]):
                    error = Unreadable(
                        "it is damaged: a record does not match its checksum", self.offset + behind - stretch.size
                    )
                    return [*self.stretches[:number], *([stretch._replace(records=place)] if place else [])], error
        return self.stretches, None

    def records(self) -> Iterator[bytes]:
        """Each one checked."""
        right, error = self.checked()
        yield from replace(self, stretches=right).unchecked()
        if error is not None:
            raise error

    def unchecked(self) -> Iterator[bytes]:
        for stretch in self.stretches:
            yield from self._records_of(stretch)

    def _records_of(self, stretch: Stretch) -> Iterator[bytes]:
        for head in range(stretch.begin, stretch.end, stretch.size):
            yield self.content[head + HEAD_BYTES : head + HEAD_BYTES + stretch.length]


def framed(file: BinaryIO) -> Iterator[Frames]:
    """What is cut or damaged ends it, with the place."""
    rest, offset, wanted = b"", 0, 0
    while True:
        more = file.read(max(BLOCK_BYTES, wanted - len(rest)))
        content = rest + more
        stretches: list[Stretch] = []
        error = None
        try:
            for stretch in _stretches(content, offset):
                stretches.append(stretch)
        except Unreadable as found:
            error = found
        wanted = 0
        if stretches and not stretches[-1].records:
            wanted = stretches.pop().size
        if stretches:
            yield Frames(content, stretches, offset)
        if error is not None:
            raise error
        done = stretches[-1].end if stretches else 0
        rest, offset = content[done:], offset + done
        if not more:
            if rest:
                raise Unreadable("it is cut off within a record", offset)
            return


def _stretches(content: bytes, offset: int) -> Iterator[Stretch]:
    """The last one has no record where the content ends within its first one."""
    at, known, together = 0, b"", FEW
    length = 0
    while at + HEAD_BYTES <= len(content):
        head = content[at : at + HEAD_BYTES]
        if head != known:
            length, known = _length(head, offset + at), head
        whole = Stretch(at, length, (len(content) - at) // (length + AROUND_BYTES))
        if not whole.records:
            yield whole
            return
        tried = min(whole.records, together)
        after = at + whole.size
        count = _alike(content, whole._replace(records=tried)) if content[after : after + HEAD_BYTES] == head else 1
        together = 4 * together if count == tried else FEW  # so that lengths that change often cost little
        yield whole._replace(records=count)
        at += count * whole.size


def _alike(content: bytes, stretch: Stretch) -> int:
    heads = np.frombuffer(content, np.uint8, stretch.records * stretch.size, stretch.begin)
    is_same = (heads.reshape(stretch.records, -1)[:, :HEAD_BYTES] == heads[:HEAD_BYTES]).all(axis=1)
    return stretch.records if is_same.all() else int(np.argmin(is_same))


def _length(head: bytes, offset: int) -> int:
    length = int(struct.unpack("<Q", head[:8])[0])
    if not is_right(head[:8], head[8:]):
        raise Unreadable("it is damaged: the length of a record does not match its checksum", offset)
    if length > LONGEST_RECORD:
        raise Unreadable(f"a record says it is {length:,} bytes long", offset)
    return length


def records(file: BinaryIO) -> Iterator[bytes]:
    for frames in framed(file):
        yield from frames.records()
