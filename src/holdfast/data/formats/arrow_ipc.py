"""Arrow files and streams, Feather: batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import ipc

from holdfast.data.formats.arrow_columns import chunk_of, columns_of
from holdfast.data.formats.contract import Chunk, Opened, Part, Schema, Unreadable


class ArrowTable:
    format, member, hashes_rows = "arrow", "", False

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = path.stat().st_size
        try:
            self._source = pa.memory_map(str(path))
            self._reader: Any = self._opened()
            self.schema = Schema(columns_of(self._reader.schema), None, None)
        except (pa.ArrowException, OSError) as error:
            raise Unreadable(str(error).splitlines()[0][:200] if str(error) else "it is damaged") from None

    def _opened(self) -> Any:
        try:
            return ipc.open_file(self._source)
        except pa.ArrowInvalid:
            self._source.seek(0)
            return ipc.open_stream(self._source)

    def parts(self) -> Iterator[Part]:
        count = getattr(self._reader, "num_record_batches", None)
        numbers: list[int | None] = [None] if count is None else list(range(count))
        for number in numbers:
            yield Part(number, self.bytes // max(1, len(numbers)))

    def read(self, part: Part) -> Iterator[Chunk]:
        try:
            if part.key is not None:
                yield chunk_of(self._reader.get_batch(part.key))
                return
            for batch in self._reader:
                yield chunk_of(batch)
        except (pa.ArrowException, OSError) as error:
            raise Unreadable(f"it cannot be read further: {str(error).splitlines()[0][:160]}") from None

    def close(self) -> None:
        self._source.close()


def open_tables(path: Path) -> Opened:
    return Opened(tables=[ArrowTable(path)])
