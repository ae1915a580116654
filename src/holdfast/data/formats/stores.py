"""Arrays that a library reads by slices of rows: Zarr and HDF5."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.data.formats.arrays import layout
from holdfast.data.formats.contract import PART_BYTES, Array, Chunk, Part, Trouble, Unreadable

LARGEST_CHUNK = 512 << 20  # is unpacked as one piece


class StoredArray:
    """`array[first:stop]` gives rows; `chunk` is what is stored as one piece."""

    hashes_rows = False

    def __init__(self, path: Path, member: str, format: str, array: Any, broken: tuple[type[Exception], ...]) -> None:
        self.path, self.member, self.format = path, member, format
        self._array, self._broken = array, broken
        shape = tuple(int(axis) for axis in array.shape) or (1,)
        self.layout = layout(np.dtype(array.dtype), shape, member or path.stem)
        self.schema = self.layout.schema(shape[0])
        self.bytes = self.layout.row_bytes * shape[0]
        chunk = tuple(getattr(array, "chunks", None) or (1, *shape[1:]))
        self._chunk_rows = max(1, int(chunk[0]))
        if int(np.prod(chunk, dtype=float)) * self.layout.dtype.itemsize > LARGEST_CHUNK:
            raise Unreadable(
                f"one chunk of it is larger than {LARGEST_CHUNK >> 20} MiB: it cannot be read piece by piece"
            )
        if self.layout.row_bytes * self._chunk_rows > LARGEST_CHUNK:
            raise Unreadable(
                f"the rows of one chunk take more than {LARGEST_CHUNK >> 20} MiB: it cannot be read row by row"
            )
        self.troubles: tuple[Trouble, ...] = ()

    def parts(self) -> Iterator[Part]:
        rows, whole = self.schema.rows or 0, self._chunk_rows
        wanted = max(1, PART_BYTES // max(1, self.layout.row_bytes))
        step = max(whole, wanted // whole * whole)
        for first in range(0, rows, step):
            stop = min(rows, first + step)
            yield Part((first, stop), (stop - first) * self.layout.row_bytes)

    def read(self, part: Part) -> Iterator[Chunk]:
        chunk = self.layout.chunk(self.rows_of(part))
        if part.key[0] == 0 and self.troubles:
            chunk = Chunk(chunk.rows, chunk.blocks, chunk.row_bytes, self.troubles)
        yield chunk

    def rows_of(self, part: Part) -> Array:
        first, stop = part.key
        try:
            if not self._array.shape:
                return np.asarray(self._array[()]).reshape(1)
            return np.asarray(self._array[first:stop])
        except self._broken as error:
            told = str(error).splitlines()[0][:160] if str(error) else type(error).__name__
            raise Unreadable(f"rows {first:,} to {stop - 1:,} cannot be read: {told}") from None

    def close(self) -> None:
        pass
