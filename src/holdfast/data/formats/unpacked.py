"""A file as it is, or what gzip packed into it, as one stream. How far a small file may swell is bounded."""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import BinaryIO

from holdfast.data.formats.contract import Unreadable

GZIP = b"\x1f\x8b"
BOMB_BYTES = 1 << 30
BOMB_RATIO = 200  # numbers that somebody trains on do not shrink so far
READ_BYTES = 1 << 18
AS_GZIP = 16 + zlib.MAX_WBITS


class Unpacking(io.RawIOBase):
    """All members of a gzip file, each with its checksum."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._member = zlib.decompressobj(AS_GZIP)
        self._ahead = b""  # read and not unpacked
        self.taken = self.given = 0  # bytes of the file, and of what was in it

    def readable(self) -> bool:
        return True

    def readinto(self, into: memoryview) -> int:  # type: ignore[override]
        while True:
            if not self._ahead:
                self._ahead = self._packed.read(READ_BYTES)
                self.taken += len(self._ahead)
            is_over = not self._ahead
            if self._member.eof:
                self._ahead = self._ahead.lstrip(b"\0")  # as tapes are padded
                if is_over:
                    return 0
                if self._ahead:
                    self._member = zlib.decompressobj(AS_GZIP)
                continue
            found = self._unpacked(len(into))
            if found:
                into[: len(found)] = found
                return len(found)
            if is_over and not self._member.eof:
                raise Unreadable("it is cut off: what is packed in it has no end", self.taken)

    def _unpacked(self, most: int) -> bytes:
        try:
            found = self._member.decompress(self._ahead, most)
        except zlib.error as error:
            raise Unreadable(f"it cannot be unpacked: {error}", self.taken - len(self._ahead)) from None
        self._ahead = self._member.unconsumed_tail or self._member.unused_data
        self.given += len(found)
        if self.given > max(BOMB_BYTES, BOMB_RATIO * self.taken):
            raise Unreadable(f"it unpacks to more than {BOMB_RATIO} times its size: it is not unpacked further")
        return found

    def close(self) -> None:
        self._packed.close()
        super().close()


def is_packed(path: Path) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == GZIP


def open_unpacked(path: Path) -> io.BufferedReader:
    if is_packed(path):
        return io.BufferedReader(Unpacking(open(path, "rb", buffering=0)), READ_BYTES)
    return open(path, "rb")


def bytes_taken(file: io.BufferedReader) -> int:
    """Of the file as it lies on the disk."""
    return file.raw.taken if isinstance(file.raw, Unpacking) else file.tell()
