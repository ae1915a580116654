"""What a format gives: its columns, its rows in chunks that are read one after the other, and rows into arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

TEXT_BYTES = 64  # that a value of text is counted with: how long the others are is known once they are read


class CannotStream(ValueError):
    """In one line: what cannot be read, and what to do about it."""


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    shape: tuple[int, ...]  # of one row
    dtype: np.dtype[Any]

    @property
    def row_bytes(self) -> int:
        count = int(np.prod(self.shape, dtype=np.int64))
        return count * (TEXT_BYTES if self.dtype.hasobject else self.dtype.itemsize)


Arrays = Mapping[str, "np.ndarray[Any, Any]"]


class Reader(Protocol):
    """Of one pass, used by one thread: it may keep its place in a file."""

    def fill(self, chunk: int, begin: int, out: Arrays) -> None:
        """Rows of a chunk, from `begin` on, into all of `out`."""


class Source(Protocol):
    columns: tuple[Column, ...]
    chunk_rows: Sequence[int] | np.ndarray[Any, Any]

    def reader(self) -> Reader: ...

    def likeness(self) -> str:
        """What the data is known by: sizes and times of files, or a shape."""


def rows_in_chunks(rows: int, each: int) -> np.ndarray[Any, Any]:
    """The last one has what is left."""
    each = max(1, each)
    counts = np.full(-(-rows // each), each, np.int64)
    if rows % each:
        counts[-1] = rows % each
    return counts
