"""Where the rows of a CSV file are: one pass over its bytes, at the speed of the disk, that keeps a few numbers for each chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from holdfast.data.stream.source import CannotStream

CHUNK_BYTES = 2 << 20
LONGEST_ROW = 64 << 20
NEW_LINE, QUOTE, RETURN = 10, 34, 13


class CsvChunk(NamedTuple):
    begin: int
    end: int
    rows: int


def chunks_of(path: Path) -> list[CsvChunk]:
    """Of whole rows, without the header. A line break within quotes ends no row; an empty line is none."""
    found: list[CsvChunk] = []
    with path.open("rb") as file:
        header = file.readline(LONGEST_ROW)
        begin, rest = len(header), b""
        while True:
            block = file.read(CHUNK_BYTES)
            data = rest + block
            if not data:
                return found
            if not block and not data.endswith(b"\n"):
                data += b"\n"
            ends = _row_ends(data)
            if not len(ends):
                if not block or len(data) > LONGEST_ROW:
                    raise CannotStream(f"{path}: the row at byte {begin} has no end (a quote that is never closed?)")
                rest = data
                continue
            cut = int(ends[-1]) + 1
            rows = len(ends) - _empty_lines(data, ends)
            if rows:
                found.append(CsvChunk(begin, begin + cut, rows))
            begin, rest = begin + cut, data[cut:]
            if not block:
                return found


def _row_ends(data: bytes) -> np.ndarray[Any, Any]:
    codes = np.frombuffer(data, np.uint8)
    ends = np.flatnonzero(codes == NEW_LINE)
    if QUOTE in data:
        quotes = np.flatnonzero(codes == QUOTE)
        ends = ends[np.searchsorted(quotes, ends) % 2 == 0]
    return ends


def _empty_lines(data: bytes, ends: np.ndarray[Any, Any]) -> int:
    lengths = np.diff(ends, prepend=-1)
    short = int(np.count_nonzero(lengths == 1))
    codes = np.frombuffer(data, np.uint8)
    return short + int(np.count_nonzero((lengths == 2) & (codes[ends - 1] == RETURN)))
