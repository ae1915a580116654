"""TFRecord: records with their checksums, each a tf.train.Example; TensorFlow is not imported."""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import google_crc32c
import numpy as np

from holdfast.data.formats.content import content_hash
from holdfast.data.formats.contract import (
    PART_BYTES,
    Array,
    Chunk,
    Column,
    Numbers,
    Opened,
    Part,
    Schema,
    Trouble,
    Unreadable,
)
from holdfast.data.formats.examples_wire import Damaged, Feature, alike, features_of

LONGEST_RECORD = 1 << 30
LEARNT_FROM = 100  # records
GZIP = b"\x1f\x8b"
DELTA = 0xA282EAD8


def masked_crc(content: bytes) -> int:
    crc = google_crc32c.value(content)
    return int(((crc >> 15 | crc << 17) + DELTA) & 0xFFFFFFFF)


def records(file: BinaryIO) -> Iterator[bytes]:
    """Each one checked. What is cut or damaged ends it, with the place."""
    offset = 0
    while True:
        head = file.read(12)
        if not head:
            return
        if len(head) < 12:
            raise Unreadable("it is cut off within a record", offset)
        length, length_crc = struct.unpack("<QI", head)
        if masked_crc(head[:8]) != length_crc:
            if head[:2] == GZIP:
                raise Unreadable("it is compressed; unpack it with gunzip first")
            raise Unreadable("it is damaged: the length of a record does not match its checksum", offset)
        if length > LONGEST_RECORD:
            raise Unreadable(f"a record says it is {length:,} bytes long", offset)
        content = file.read(length + 4)
        if len(content) < length + 4:
            raise Unreadable("it is cut off within a record", offset)
        if masked_crc(content[:length]) != struct.unpack("<I", content[length:])[0]:
            raise Unreadable("it is damaged: a record does not match its checksum", offset)
        offset += 16 + length
        yield content[:length]


class TfrecordTable:
    format, member, hashes_rows = "tfrecord", "", True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = path.stat().st_size
        self.kinds: dict[str, str] = {}
        try:
            with open(path, "rb") as file:
                for number, record in enumerate(records(file)):
                    for name, feature in features_of(record).items():
                        self.kinds.setdefault(name, feature.kind)
                    if number >= LEARNT_FROM:
                        break
        except Unreadable:
            if not self.kinds:
                raise
        except Damaged as error:
            raise Unreadable(f"its records are no tf.train.Example: {error}") from None
        self.names = sorted(self.kinds)
        self.schema = Schema(tuple(Column(name, self.kinds[name]) for name in self.names), None, None)

    def parts(self) -> Iterator[Part]:
        gathered: list[bytes] = []
        size = 0
        with open(self.path, "rb") as file:
            try:
                for record in records(file):
                    gathered.append(record)
                    size += len(record) + 16
                    if size >= PART_BYTES // 2:
                        yield Part(gathered, size)
                        gathered, size = [], 0
            except Unreadable:
                if gathered:
                    yield Part(gathered, size)
                raise
        if gathered:
            yield Part(gathered, size)

    def read(self, part: Part) -> Iterator[Chunk]:
        hashes = np.array([content_hash(record) for record in part.key], np.uint64)
        blocks = self._of_one_form(part.key)
        if blocks is not None:
            yield Chunk(len(part.key), blocks, None, (), hashes)
            return
        values: defaultdict[str, list[tuple[int, Array]]] = defaultdict(list)
        absent: defaultdict[str, list[int]] = defaultdict(list)
        other: defaultdict[str, list[int]] = defaultdict(list)
        for row, record in enumerate(part.key):
            try:
                found = features_of(record)
            except Damaged as error:
                raise Unreadable(f"a record is no tf.train.Example: {error}") from None
            for name in self.names:
                self._sort_in(row, name, found.get(name), (values, absent, other))
        blocks = tuple(self._block(name, values[name]) for name in self.names if values[name])
        yield Chunk(len(part.key), blocks, None, tuple(_troubles(absent, other, self.kinds)), hashes)

    def _of_one_form(self, records: list[bytes]) -> tuple[Numbers, ...] | None:
        """Where all records are laid out as the first is: many times as fast as one after the other."""
        length = len(records[0])
        found = alike(records) if all(len(record) == length for record in records) else None
        numbers = {name: values for name, values in (found or {}).items() if values.shape[1]}
        if found is None or set(numbers) != {name for name in self.names if self.kinds[name] != "bytes"}:
            return None
        if any(values.dtype.name != self.kinds[name] for name, values in numbers.items()):
            return None
        return tuple(
            Numbers(self.names.index(name), values.reshape(-1, 1), values.shape[1])
            for name, values in sorted(numbers.items())
        )

    def _sort_in(
        self,
        row: int,
        name: str,
        feature: Feature | None,
        into: tuple[dict[str, list[tuple[int, Array]]], dict[str, list[int]], dict[str, list[int]]],
    ) -> None:
        values, absent, other = into
        if feature is None:
            absent[name].append(row)
        elif feature.kind != self.kinds[name]:
            other[name].append(row)
        elif isinstance(feature.values, np.ndarray) and len(feature.values):
            values[name].append((row, feature.values))

    def _block(self, name: str, found: list[tuple[int, Array]]) -> Numbers:
        rows = np.repeat([row for row, _ in found], [len(values) for _, values in found])
        return Numbers(
            self.names.index(name), np.concatenate([values for _, values in found]).reshape(-1, 1), row_of=rows
        )

    def close(self) -> None:
        pass


def _troubles(absent: dict[str, list[int]], other: dict[str, list[int]], kinds: dict[str, str]) -> Iterator[Trouble]:
    for name, rows in absent.items():
        yield Trouble("shape", "records without this feature: {count}", tuple(rows[:20]), len(rows), False, name)
    for name, rows in other.items():
        text = f"records in which it is not {kinds[name]}: {{count}}"
        yield Trouble("dtype", text, tuple(rows[:20]), len(rows), True, name)


def open_tables(path: Path) -> Opened:
    return Opened(tables=[TfrecordTable(path)])
