"""TFRecord of tf.train.Example, without TensorFlow: one pass over the lengths of its records, then chunks of them from the place where they lie."""

from __future__ import annotations

import io
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.data.formats.contract import Unreadable
from holdfast.data.formats.examples_wire import Damaged, Feature, features_of
from holdfast.data.stream.npy_files import CHUNK_BYTES, stamp
from holdfast.data.stream.source import Arrays, CannotStream, Column

HEAD_BYTES, TAIL_BYTES = 12, 4  # a length with its checksum, and the checksum of the record


class TfrecordRows:
    """A feature that has one value in each record is a number a row, one of more values is a row of as many."""

    def __init__(self, path: Path, columns: Sequence[str] | None) -> None:
        try:
            import google_crc32c  # noqa: F401, PLC0415
        except ImportError:
            raise CannotStream(f"{path} is read with google-crc32c: pip install google-crc32c") from None
        self._path = path
        self._chunks = _chunks_of(path)
        if not self._chunks:
            raise CannotStream(f"{path} has no rows")
        begin, end, _ = self._chunks[0]
        first = self._records(begin, end)[0]
        self.columns = tuple(
            _column(name, feature, path)
            for name, feature in sorted(self._features(first, 0).items())
            if columns is None or name in columns
        )
        self.chunk_rows: Sequence[int] | np.ndarray[Any, Any] = np.array([rows for _, _, rows in self._chunks])
        self._first_rows = np.cumsum([0, *self.chunk_rows])

    def likeness(self) -> str:
        return stamp(self._path)

    def reader(self) -> _TfrecordReader:
        return _TfrecordReader(self)

    def rows_of(self, chunk: int) -> list[dict[str, Feature]]:
        begin, end, _ = self._chunks[chunk]
        first = int(self._first_rows[chunk])
        return [self._features(record, first + number) for number, record in enumerate(self._records(begin, end))]

    def values(self, feature: Feature | None, column: Column, chunk: int, row: int) -> Any:
        is_like = feature is not None and feature.kind == ("bytes" if column.dtype.hasobject else column.dtype.name)
        count = int(np.prod(column.shape, dtype=np.int64))
        if feature is None or not is_like or len(feature.values) != count:
            found = "nothing" if feature is None else f"{len(feature.values)} of {feature.kind}"
            told = f"{count} of {'bytes' if column.dtype.hasobject else column.dtype}"
            record = int(self._first_rows[chunk]) + row
            raise CannotStream(
                f"{self._path}, record {record}: the feature {column.name} has {found} instead of {told}"
            )
        return feature.values if column.shape else feature.values[0]

    def _features(self, record: bytes, row: int) -> dict[str, Feature]:
        try:
            return features_of(record)
        except Damaged as error:
            raise CannotStream(f"{self._path}, record {row} is no tf.train.Example: {error}") from None

    def _records(self, begin: int, end: int) -> list[bytes]:
        from holdfast.data.formats.record_frames import records  # noqa: PLC0415 - needs google-crc32c

        with self._path.open("rb") as file:
            file.seek(begin)
            content = file.read(end - begin)
        try:
            return list(records(io.BytesIO(content)))
        except Unreadable as error:
            raise CannotStream(f"{self._path}, from byte {begin} on: {error}") from None


class _TfrecordReader:
    def __init__(self, source: TfrecordRows) -> None:
        self._source = source
        self._columns = {column.name: column for column in source.columns}
        self._chunk, self._rows = -1, list[dict[str, Feature]]()

    def fill(self, chunk: int, begin: int, out: Arrays) -> None:
        if chunk != self._chunk:
            self._chunk, self._rows = chunk, self._source.rows_of(chunk)
        for name, rows in out.items():
            for number in range(len(rows)):
                feature = self._rows[begin + number].get(name)
                rows[number] = self._source.values(feature, self._columns[name], chunk, begin + number)


def _chunks_of(path: Path) -> list[tuple[int, int, int]]:
    """Begin, end and records of each. Only lengths are read here; checksums are looked at with the records."""
    found: list[tuple[int, int, int]] = []
    size = path.stat().st_size
    begin = at = rows = 0
    with path.open("rb") as file:
        if file.peek(2)[:2] == b"\x1f\x8b":
            raise CannotStream(f"{path} is compressed, so its records cannot be read from the middle: gunzip it first")
        while at < size:
            head = file.read(HEAD_BYTES)
            after = at + HEAD_BYTES + (struct.unpack("<Q", head[:8])[0] if len(head) == HEAD_BYTES else 0) + TAIL_BYTES
            if len(head) < HEAD_BYTES or after > size:
                raise CannotStream(f"{path} is cut off or damaged: the record at byte {at} has no end")
            file.seek(after)
            at, rows = after, rows + 1
            if at - begin >= CHUNK_BYTES:
                found.append((begin, at, rows))
                begin, rows = at, 0
    return [*found, (begin, at, rows)] if rows else found


def _column(name: str, feature: Feature, path: Path) -> Column:
    count = len(feature.values)
    if not count:
        raise CannotStream(f"{path}: the feature {name} of the first record is empty; leave it out with columns=")
    dtype = np.dtype(object if feature.kind == "bytes" else feature.kind)
    return Column(name, () if count == 1 else (count,), dtype)
