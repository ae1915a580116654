"""Arrays that give rows by slicing: NumPy's, memory maps, zarr, h5py; and dask's, block by block."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.data.stream.npy_files import CHUNK_BYTES
from holdfast.data.stream.source import Arrays, CannotStream, Column, rows_in_chunks


class SlicedRows:
    """Arrays of the same length by name. What is stored in chunks is read in them."""

    def __init__(self, arrays: dict[str, Any], known_as: str = "") -> None:
        lengths = {name: int(array.shape[0]) for name, array in arrays.items()}
        if len(set(lengths.values())) > 1:
            told = ", ".join(f"{name} has {rows}" for name, rows in lengths.items())
            raise CannotStream(f"the arrays differ in their rows: {told}")
        self._arrays, self._known_as = arrays, known_as
        self.columns = tuple(
            Column(name, tuple(int(size) for size in array.shape[1:]), np.dtype(array.dtype))
            for name, array in arrays.items()
        )
        row_bytes = max(1, sum(column.row_bytes for column in self.columns))
        stored = [int(array.chunks[0]) for array in arrays.values() if getattr(array, "chunks", None)]
        self._each = max(stored, default=max(1, CHUNK_BYTES // row_bytes))
        self.chunk_rows: Sequence[int] | np.ndarray[Any, Any] = rows_in_chunks(next(iter(lengths.values())), self._each)

    def reader(self) -> SlicedRows:
        return self

    def likeness(self) -> str:
        return " ".join(f"{column.name} {column.shape} {column.dtype}" for column in self.columns) + self._known_as

    def fill(self, chunk: int, begin: int, out: Arrays) -> None:
        first = chunk * self._each + begin
        for name, rows in out.items():
            rows[...] = self._arrays[name][first : first + len(rows)]


class DaskRows:
    """A block is computed once and given out row by row: never a row at a time, and never all of the array."""

    def __init__(self, array: Any, name: str) -> None:
        self._array, self._name = array, name
        if any(np.isnan(size) for size in array.shape):
            raise CannotStream("the dask array does not know its rows: call compute_chunk_sizes() on it first")
        self.columns: tuple[Column, ...] = (
            Column(name, tuple(int(size) for size in array.shape[1:]), np.dtype(array.dtype)),
        )
        self.chunk_rows: Sequence[int] | np.ndarray[Any, Any] = np.array(array.chunks[0], np.int64)

    def likeness(self) -> str:
        return f"{self._array.shape} {self._array.dtype} {self._array.chunks[0]}"

    def reader(self) -> _DaskReader:
        return _DaskReader(self._array, self._name)


class _DaskReader:
    def __init__(self, array: Any, name: str) -> None:
        self._array, self._name = array, name
        self._chunk, self._block = -1, np.empty(0)

    def fill(self, chunk: int, begin: int, out: Arrays) -> None:
        if chunk != self._chunk:
            self._block = np.asarray(self._array.blocks[chunk].compute(scheduler="synchronous"))
            self._chunk = chunk
        rows = out[self._name]
        rows[...] = self._block[begin : begin + len(rows)]


def is_dask(data: Any) -> bool:
    return hasattr(data, "blocks") and hasattr(data, "compute") and hasattr(data, "chunks")


def zarr_rows(path: Path, columns: Sequence[str] | None) -> SlicedRows:
    try:
        import zarr  # noqa: PLC0415
    except ImportError:
        raise CannotStream(f"{path} is read with zarr: pip install zarr") from None
    found = zarr.open(str(path), mode="r")
    if hasattr(found, "shape"):
        return SlicedRows({path.stem: found}, str(path))
    arrays = {name: array for name, array in found.arrays() if columns is None or name in columns}
    if not arrays:
        raise CannotStream(f"{path} has no array{'' if columns is None else ' named ' + ' or '.join(columns)}")
    return SlicedRows(arrays, str(path))
