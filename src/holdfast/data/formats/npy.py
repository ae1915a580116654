"""NumPy's .npy: a header that is parsed without trusting it, then rows read straight into a buffer of each thread."""

from __future__ import annotations

import ast
import math
import os
import struct
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np

from holdfast.data.formats.arrays import LONGEST_ROW, Layout, layout
from holdfast.data.formats.contract import PART_BYTES, Array, Chunk, Opened, Part, Unreadable

MAGIC = b"\x93NUMPY"
LONGEST_HEADER = 1 << 16  # NumPy itself takes 10,000 bytes; structured types need some more
MOST_AXES = 64
MOST_ELEMENTS = 1 << 62


@dataclass(frozen=True)
class Header:
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    fortran: bool
    bytes: int  # of the header: where the values begin


def read_header(file: IO[bytes]) -> Header:
    start = file.read(8)
    if len(start) < 8 or start[:6] != MAGIC:
        raise Unreadable("it is empty" if not start else "it is no .npy file: its first bytes are others")
    width, form = (2, "<H") if start[6] == 1 else (4, "<I")
    if start[6] not in (1, 2, 3):
        raise Unreadable(f"its .npy version {start[6]}.{start[7]} is none that NumPy writes", 6)
    size = file.read(width)
    if len(size) < width:
        raise Unreadable("it ends within its header", 8)
    (length,) = struct.unpack(form, size)
    if length > LONGEST_HEADER:
        raise Unreadable(f"its header says it is {length:,} bytes long, which none is", 8)
    text = file.read(length)
    if len(text) < length:
        raise Unreadable("it ends within its header", 8)
    return _parsed(text.decode("utf-8" if start[6] == 3 else "latin-1", "replace"), 8 + width + length)


def _parsed(text: str, size: int) -> Header:
    try:
        found = ast.literal_eval(text.strip())
        dtype = np.dtype(_checked(found["descr"]))
        shape, fortran = found["shape"], found["fortran_order"]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError):
        raise Unreadable("its header is damaged", 8) from None
    if not isinstance(shape, tuple) or not all(type(axis) is int and axis >= 0 for axis in shape):
        raise Unreadable(f"its header has no shape: {shape!r:.80}", 8)
    if len(shape) > MOST_AXES or math.prod(shape) * max(1, dtype.itemsize) > MOST_ELEMENTS:
        raise Unreadable(f"its header has a shape that no memory holds: {shape!r:.80}", 8)
    return Header(dtype, shape, bool(fortran), size)


def _checked(described: object) -> Any:
    """`descr` as NumPy writes it: a string, or a list of fields."""
    if isinstance(described, str | list):
        return described
    raise ValueError(described)


class NpyTable:
    format, hashes_rows = "npy", False

    def __init__(self, path: Path, member: str = "") -> None:
        self.path, self.member = path, member
        self._file = open(path, "rb", buffering=0)  # noqa: SIM115 - closed by close()
        try:
            self.header = read_header(self._file)
            self.layout = layout_of(self.header, path.stem)
        except BaseException:
            self._file.close()
            raise
        self.size = os.fstat(self._file.fileno()).st_size
        shape = self.header.shape or (1,)
        self.schema = self.layout.schema(shape[0])
        self.bytes = self.layout.row_bytes * shape[0]
        self._buffers = threading.local()
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(self._file.fileno(), 0, 0, os.POSIX_FADV_SEQUENTIAL)

    def close(self) -> None:
        self._file.close()

    def parts(self) -> Iterator[Part]:
        yield from row_parts(self.layout, self.schema.rows or 0)

    def read(self, part: Part) -> Iterator[Chunk]:
        first, stop = part.key
        if isinstance(first, tuple):  # a piece of a row
            start, count = first[0], stop[0] - first[0]
            yield self.layout.flat_chunk(self._values(start, count), start)
            return
        values = self.rows_of(part)
        yield self.layout.chunk(values)
        if len(values) < stop - first:
            raise self._truncated(first + len(values))

    def rows_of(self, part: Part) -> Array:
        """Fewer than it should have where the file is cut off."""
        first, stop = part.key
        if self.header.fortran and len(self.header.shape) > 1:
            return self._fortran_rows(first, stop)
        per_row = self.layout.per_row
        values = self._values(first * per_row, (stop - first) * per_row, allow_fewer=True)
        whole = len(values) // per_row if per_row else stop - first
        return values[: whole * per_row].reshape(whole, *self.layout.row_shape)

    def _truncated(self, rows: int) -> Unreadable:
        return Unreadable(f"it is cut off: {rows:,} of {self.schema.rows:,} rows are there", self.size)

    def _values(self, start: int, count: int, allow_fewer: bool = False) -> Array:
        item = self.header.dtype.itemsize
        wanted = count * item
        buffer = getattr(self._buffers, "buffer", None)
        if buffer is None or len(buffer) < wanted:
            buffer = self._buffers.buffer = memoryview(bytearray(max(wanted, PART_BYTES)))
        offset, got = self.header.bytes + start * item, 0
        while got < wanted:
            more = os.preadv(self._file.fileno(), [buffer[got:wanted]], offset + got)
            if not more:
                break
            got += more
        if got < wanted and not allow_fewer:
            raise self._truncated(start // max(1, self.layout.per_row))
        return np.frombuffer(buffer[: got // item * item], self.header.dtype)

    def _fortran_rows(self, first: int, stop: int) -> Array:
        """Column by column on disk: a stretch of each is read."""
        rows = self.header.shape[0]
        columns = np.empty((self.layout.per_row, stop - first), self.header.dtype)
        for number in range(len(columns)):
            columns[number] = self._values(number * rows + first, stop - first)
        return columns.reshape(*reversed(self.layout.row_shape), stop - first).T


def layout_of(header: Header, name: str) -> Layout:
    found = layout(header.dtype, header.shape or (1,), name)
    if header.fortran and found.row_bytes > LONGEST_ROW:
        raise Unreadable("its rows are long and stored column by column; save it with numpy.ascontiguousarray")
    return found


def row_parts(layout: Layout, rows: int) -> Iterator[Part]:
    """Whole rows, or pieces of them where one is too long to be held."""
    if not layout.row_bytes:
        yield Part((0, rows), 0)
        return
    if layout.row_bytes > LONGEST_ROW:
        item = layout.dtype.itemsize
        step, total = PART_BYTES // item, layout.per_row * rows
        for start in range(0, total, step):
            stop = min(total, start + step)
            yield Part(((start,), (stop,)), (stop - start) * item)
        return
    step = max(1, PART_BYTES // layout.row_bytes)
    for first in range(0, rows, step):
        stop = min(rows, first + step)
        yield Part((first, stop), (stop - first) * layout.row_bytes)


def open_tables(path: Path) -> Opened:
    return Opened(tables=[NpyTable(path)])
