"""NumPy's .npz: a zip of arrays, unpacked as a stream. Nothing is written, and nothing is believed that the archive says of sizes."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

import numpy as np

from holdfast.data.formats.contract import PART_BYTES, Array, Chunk, Opened, Part, Unreadable
from holdfast.data.formats.npy import Header, layout_of, read_header, row_parts
from holdfast.data.formats.unpacked import BOMB_BYTES, BOMB_RATIO

MOST_ARRAYS = 10_000
FORTRAN_BYTES = 32 * PART_BYTES  # stored column by column: must be held whole
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)


class NpzTable:
    format, hashes_rows = "npz", False

    def __init__(self, path: Path, member: str, header: Header) -> None:
        self.path, self.member, self.header = path, member, header
        self.layout = layout_of(header, member)
        rows = (header.shape or (1,))[0]
        self.schema = self.layout.schema(rows)
        self.bytes = self.layout.row_bytes * rows
        if header.fortran and len(header.shape) > 1 and self.bytes > FORTRAN_BYTES:
            raise Unreadable("it is long and stored column by column; save it with numpy.ascontiguousarray")

    def parts(self) -> Iterator[Part]:
        """Unpacked in order; the threads look at what is unpacked."""
        try:
            with zipfile.ZipFile(self.path) as archive, archive.open(f"{self.member}.npy") as stream:
                read_header(stream)
                if self.header.fortran and len(self.header.shape) > 1:
                    rows = self.header.shape[0]
                    whole = _values(stream, self.header, self.layout.per_row * rows, rows)
                    yield Part(whole.reshape(tuple(reversed(self.header.shape))).T, self.bytes)
                    return
                for part in row_parts(self.layout, self.schema.rows or 0):
                    yield Part((part.key, self._piece(stream, part)), part.bytes)
                if stream.read(1):
                    raise Unreadable("it holds more than its header says")
        except BROKEN as error:
            raise Unreadable(f"it cannot be unpacked: {error}") from None

    def _piece(self, stream: IO[bytes], part: Part) -> Array:
        first, stop = part.key
        if isinstance(first, tuple):
            return _values(stream, self.header, stop[0] - first[0], 0)
        return _values(stream, self.header, (stop - first) * self.layout.per_row, first)

    def read(self, part: Part) -> Iterator[Chunk]:
        first = None if isinstance(part.key, np.ndarray) else part.key[0][0]
        if isinstance(first, tuple):
            yield self.layout.flat_chunk(part.key[1], first[0])
            return
        yield self.layout.chunk(self.rows_of(part))

    def rows_of(self, part: Part) -> Array:
        if isinstance(part.key, np.ndarray):
            return part.key
        values = part.key[1]
        rows = len(values) // self.layout.per_row if self.layout.per_row else (self.schema.rows or 0)
        return np.asarray(values.reshape(rows, *self.layout.row_shape))

    def close(self) -> None:
        pass


def _values(stream: IO[bytes], header: Header, count: int, row: int) -> Array:
    wanted = count * header.dtype.itemsize
    content = stream.read(wanted)
    if len(content) < wanted:
        raise Unreadable(f"it is cut off after {row:,} rows")
    return np.frombuffer(content, header.dtype)


def open_tables(path: Path) -> Opened:
    opened = Opened()
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MOST_ARRAYS:
                raise Unreadable(f"it says it holds {len(members):,} arrays, which none does")
            packed = path.stat().st_size
            if sum(member.file_size for member in members) > max(BOMB_BYTES, 1100 * packed):
                raise Unreadable(
                    "it would unpack to more than any honest archive of its size holds: it is not unpacked"
                )
            for member in members:
                try:
                    opened.tables.append(_table(path, archive, member))
                except (Unreadable, *BROKEN) as error:
                    opened.troubles.append((member.filename[:100], str(error) or "it cannot be unpacked"))
    except BROKEN as error:
        raise Unreadable(f"it is no whole .npz archive: {error}") from None
    return opened


def _table(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> NpzTable:
    name = PurePosixPath(member.filename)
    if name.is_absolute() or ".." in name.parts or "\\" in member.filename:
        raise Unreadable("its name leads out of the archive: nobody means well with that")
    if name.suffix != ".npy":
        raise Unreadable("it is no array")
    if member.file_size > BOMB_BYTES and member.file_size > BOMB_RATIO * max(1, member.compress_size):
        times = member.file_size // max(1, member.compress_size)
        raise Unreadable(f"it would unpack to {member.file_size:,} bytes, {times:,} times its size: it is not unpacked")
    with archive.open(member) as stream:
        header = read_header(stream)
    return NpzTable(path, member.filename.removesuffix(".npy"), header)
