"""TFRecord: records with their checksums, each a tf.train.Example; TensorFlow is not imported."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from holdfast.data.formats.checksums import HEAD_BYTES, TAIL_BYTES
from holdfast.data.formats.content import content_hash
from holdfast.data.formats.contract import Array, Chunk, Column, Numbers, Opened, Part, Schema, Trouble, Unreadable
from holdfast.data.formats.examples_wire import Damaged, Feature, alike, features_of
from holdfast.data.formats.record_frames import Frames, framed, records
from holdfast.data.formats.unpacked import bytes_taken, open_unpacked

LEARNT_FROM = 100  # records


class TfrecordTable:
    format, member, hashes_rows = "tfrecord", "", True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.bytes = path.stat().st_size
        self.kinds: dict[str, str] = {}
        try:
            with open_unpacked(path) as file:
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
        taken = 0
        with open_unpacked(self.path) as file:
            for frames in framed(file):
                before, taken = taken, bytes_taken(file)
                yield Part(frames, taken - before)

    def read(self, part: Part) -> Iterator[Chunk]:
        return self._read(part.key, hashes_rows=True)

    def read_suspects(self, part: Part) -> Iterator[Chunk]:
        return self._read(part.key, hashes_rows=False)

    def _read(self, frames: Frames, hashes_rows: bool) -> Iterator[Chunk]:
        right, error = frames.checked()
        frames = replace(frames, stretches=right)
        rows = sum(stretch.records for stretch in right)
        if rows:
            blocks, troubles = self._of_one_form(frames), tuple[Trouble, ...]()
            if blocks is None:
                blocks, troubles = self._one_by_one(frames)
            hashes = [content_hash(record) for record in frames.unchecked()] if hashes_rows else None
            yield Chunk(rows, blocks, None, troubles, None if hashes is None else np.array(hashes, np.uint64))
        if error is not None:
            raise error

    def _one_by_one(self, frames: Frames) -> tuple[tuple[Numbers, ...], tuple[Trouble, ...]]:
        values: defaultdict[str, list[tuple[int, Array]]] = defaultdict(list)
        absent: defaultdict[str, list[int]] = defaultdict(list)
        other: defaultdict[str, list[int]] = defaultdict(list)
        for row, record in enumerate(frames.unchecked()):
            try:
                found = features_of(record)
            except Damaged as error:
                raise Unreadable(f"a record is no tf.train.Example: {error}") from None
            for name in self.names:
                self._sort_in(row, name, found.get(name), (values, absent, other))
        blocks = tuple(self._block(name, values[name]) for name in self.names if values[name])
        return blocks, tuple(_troubles(absent, other, self.kinds))

    def _of_one_form(self, frames: Frames) -> tuple[Numbers, ...] | None:
        """Where all records are laid out as the first is: many times as fast as one after the other."""
        lengths = {stretch.length for stretch in frames.stretches}
        if len(lengths) != 1:
            return None
        stretches = [frames.rows(stretch) for stretch in frames.stretches]
        rows = stretches[0] if len(stretches) == 1 else np.concatenate(stretches)
        found = alike(rows[:, HEAD_BYTES:-TAIL_BYTES])
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
