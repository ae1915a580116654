"""`.npy` files, and `.npz` files whose arrays are stored as they are: rows are read from the place where they lie."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np

from holdfast.data.stream.source import Arrays, CannotStream, Column, rows_in_chunks
from holdfast.units import amount

CHUNK_BYTES = 1 << 20  # read at once: beyond it no disk gets faster, and chunks are what a shuffle mixes
ONE_READ = 1 << 30  # the kernel reads no more than 2 GiB at once
LOCAL_HEADER = 30  # bytes of a zip's entry before its name; the lengths of name and extra field are its last four


@dataclass(frozen=True, slots=True)
class StoredArray:
    """Where the rows of an array begin in a file."""

    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        return int(np.prod(self.shape[1:], dtype=np.int64)) * self.dtype.itemsize

    def check_size(self) -> None:
        held, wanted = self.path.stat().st_size, self.offset + self.shape[0] * self.row_bytes
        if held < wanted:
            raise CannotStream(
                f"{self.path} is cut off: {amount(held, 'bytes')} of {amount(wanted, 'bytes')} are there"
            )


class NpyRows:
    """Several arrays of the same length, each a column."""

    def __init__(self, arrays: dict[str, StoredArray]) -> None:
        lengths = {name: array.shape[0] for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} has {rows}" for name, rows in lengths.items())
            raise CannotStream(f"the arrays differ in their rows: {told}; choose with columns=")
        self.arrays = arrays
        self.columns = tuple(Column(name, array.shape[1:], array.dtype) for name, array in arrays.items())
        row_bytes = sum(column.row_bytes for column in self.columns)
        self._each = max(1, CHUNK_BYTES // max(1, row_bytes))
        self.chunk_rows: Sequence[int] | np.ndarray[Any, Any] = rows_in_chunks(next(iter(lengths.values())), self._each)

    def reader(self) -> NpyRows:
        return self

    def likeness(self) -> str:
        return " ".join(f"{array.shape} {array.dtype} {stamp(array.path)}" for array in self.arrays.values())

    def fill(self, chunk: int, begin: int, out: Arrays) -> None:
        first = chunk * self._each + begin
        for name, rows in out.items():
            array = self.arrays[name]
            read_into(array.path, array.offset + first * array.row_bytes, rows)


def stamp(path: Path) -> str:
    found = path.stat()
    return f"{path.name} {found.st_size} {found.st_mtime_ns}"


def read_into(path: Path, offset: int, rows: np.ndarray[Any, Any]) -> None:
    left = memoryview(rows.reshape(-1).view(np.uint8).data) if rows.size else memoryview(b"")
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        while left:
            count = os.preadv(descriptor, [left[:ONE_READ]], offset)
            if not count:
                raise CannotStream(f"{path} ends at byte {offset}: it got shorter since it was opened")
            left, offset = left[count:], offset + count
    finally:
        os.close(descriptor)


def npy_array(path: Path) -> StoredArray:
    with path.open("rb") as file:
        array = _array_at(path, cast(BinaryIO, file), 0)
    array.check_size()
    return array


def _array_at(path: Path, file: BinaryIO, base: int) -> StoredArray:
    """The header of an array, which begins where the file stands; `base` is where in the file that is."""
    before = file.tell()
    try:
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except (ValueError, EOFError) as error:
        raise CannotStream(f"{path} is no array of NumPy's: {error}") from None
    if dtype.hasobject:
        raise CannotStream(f"{path} holds Python objects, which are read whole: save it with a plain dtype")
    if not shape or (fortran and len(shape) > 1):
        what = "a single value" if not shape else "stored column by column"
        raise CannotStream(f"{path} is {what}: save numpy.ascontiguousarray(x) to stream its rows")
    return StoredArray(path, base + file.tell() - before, tuple(shape), dtype)


def npz_arrays(path: Path, columns: Sequence[str] | None) -> dict[str, StoredArray]:
    try:
        archive = zipfile.ZipFile(path)
    except zipfile.BadZipFile as error:
        raise CannotStream(f"{path} cannot be read: {error}") from None
    with archive, path.open("rb") as raw:
        found = {}
        for entry in archive.infolist():
            name = entry.filename.removesuffix(".npy")
            if columns is not None and name not in columns:
                continue
            if entry.compress_type != zipfile.ZIP_STORED:
                raise CannotStream(
                    f"{path} is compressed, so its rows cannot be read from the middle: "
                    f"unpack it (unzip {path.name}) and open {name}.npy, or save it with numpy.savez"
                )
            raw.seek(entry.header_offset)
            header = raw.read(LOCAL_HEADER)
            at = entry.header_offset + LOCAL_HEADER + sum(np.frombuffer(header[26:30], "<u2").tolist())
            raw.seek(at)
            found[name] = _array_at(path, cast(BinaryIO, raw), at)
            found[name].check_size()
    if not found:
        raise CannotStream(f"{path} has no array{'' if columns is None else ' named ' + ' or '.join(columns)}")
    return found
