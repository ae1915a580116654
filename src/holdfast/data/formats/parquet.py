"""Parquet by row groups. Its statistics are never asked: writers leave NaN out of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from holdfast.data.formats.arrow_columns import chunk_of, columns_of, first_flat
from holdfast.data.formats.contract import PART_BYTES, Chunk, Opened, Part, Schema, Unreadable

BUFFER_BYTES = 1 << 20  # of each column: what is not decoded yet is not held
MOST_ROWS = 1 << 22  # of a group: in a larger one columns are read in batches


class ParquetTable:
    format, member, hashes_rows = "parquet", "", False

    def __init__(self, path: Path) -> None:
        self.path = path
        self._own = threading.local()
        try:
            with pq.ParquetFile(path) as file:
                groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
                self._sizes = [(group.num_rows, group.total_byte_size) for group in groups]
                columns = columns_of(file.schema_arrow)
                self._names = list(file.schema_arrow.names)
                self._first_flat = first_flat(file.schema_arrow)
                rows = file.metadata.num_rows
        except (pa.ArrowException, OSError) as error:
            raise Unreadable(_told(error)) from None
        self._width = len(self._names)
        self.schema = Schema(columns, None, rows)
        self.bytes = max(1, sum(size for _, size in self._sizes))

    def parts(self) -> Iterator[Part]:
        """Some columns of a group each: 8 of 64 columns take 130 MB where all of them together take 600."""
        for number, (rows, size) in enumerate(self._sizes):
            width = self._width
            together = max(1, min(width, PART_BYTES * width // max(1, size)))
            for first in range(0, max(1, width), together):
                stop = min(width, first + together)
                yield Part((number, first, stop, rows), size * (stop - first) // max(1, width), is_beside=first > 0)

    def read(self, part: Part) -> Iterator[Chunk]:
        number, first, stop, rows = part.key
        names = self._names[first:stop]
        try:
            if rows <= MOST_ROWS:
                table = self._file().read_row_group(number, columns=names, use_threads=False)
                batches = table.combine_chunks().to_batches() if table.num_columns else []
            else:
                batches = self._file().iter_batches(
                    MOST_ROWS // 4, row_groups=[number], columns=names, use_threads=False
                )
            for batch in batches:
                yield chunk_of(batch, self._first_flat[first])
        except (pa.ArrowException, OSError) as error:
            raise Unreadable(f"row group {number} cannot be read: {_told(error)}") from None

    def close(self) -> None:
        self._own = threading.local()

    def _file(self) -> Any:
        """One for each thread: pyarrow's is for one at a time."""
        if not hasattr(self._own, "file"):
            self._own.file = pq.ParquetFile(self.path, buffer_size=BUFFER_BYTES, pre_buffer=False)
        return self._own.file


def _told(error: Exception) -> str:
    return (str(error).splitlines() or ["it is damaged"])[0][:200]


def open_tables(path: Path) -> Opened:
    return Opened(tables=[ParquetTable(path)])
