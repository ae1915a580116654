"""Several files of one kind as one source, and labels from another file beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.data.stream.source import Arrays, CannotStream, Reader, Source


class OneAfterAnother:
    def __init__(self, parts: list[tuple[str, Source]]) -> None:
        (first_name, first), *others = parts
        for name, part in others:
            if [(c.name, c.shape, c.dtype) for c in part.columns] != [
                (c.name, c.shape, c.dtype) for c in first.columns
            ]:
                raise CannotStream(f"{name} differs from {first_name}: {told(part)} instead of {told(first)}")
        self._parts = [part for _, part in parts]
        self.columns = first.columns
        counts = [np.asarray(part.chunk_rows, np.int64) for part in self._parts]
        self.chunk_rows: Sequence[int] | np.ndarray[Any, Any] = np.concatenate(counts)
        self._starts = np.cumsum([0, *(len(count) for count in counts)])

    def likeness(self) -> str:
        return " ".join(part.likeness() for part in self._parts)

    def reader(self) -> _OneAfterAnotherReader:
        return _OneAfterAnotherReader(self._parts, self._starts)


class _OneAfterAnotherReader:
    def __init__(self, parts: list[Source], starts: Any) -> None:
        self._parts, self._starts = parts, starts
        self._number, self._reader = -1, None  # type: tuple[int, Reader | None]

    def fill(self, chunk: int, begin: int, out: Arrays) -> None:
        number = int(np.searchsorted(self._starts, chunk, side="right")) - 1
        if self._reader is None or number != self._number:
            self._number, self._reader = number, self._parts[number].reader()
        self._reader.fill(chunk - int(self._starts[number]), begin, out)


def told(source: Source) -> str:
    return ", ".join(f"{column.name} {list(column.shape)} {column.dtype}" for column in source.columns)


class Beside:
    """Rows of one source with labels of another, which must be read from any row on."""

    def __init__(self, rows: Source, labels: Source, name: str) -> None:
        counts = np.asarray(rows.chunk_rows, np.int64)
        label_counts = np.asarray(labels.chunk_rows, np.int64)
        if counts.sum() != label_counts.sum():
            raise CannotStream(f"there are {int(counts.sum())} rows and {int(label_counts.sum())} labels")
        if any(column.name == name for column in rows.columns):
            raise CannotStream(f"the data has a column {name} already")
        self._rows, self._labels, self._name = rows, labels, name
        (label,) = labels.columns
        self.columns = (*rows.columns, type(label)(name, label.shape, label.dtype))
        self.chunk_rows: Sequence[int] | np.ndarray[Any, Any] = counts
        self._starts = np.concatenate([[0], np.cumsum(counts)])
        self._label_starts = np.concatenate([[0], np.cumsum(label_counts)])

    def likeness(self) -> str:
        return f"{self._rows.likeness()} {self._labels.likeness()}"

    def reader(self) -> Reader:
        return _BesideReader(self, self._rows.reader(), self._labels.reader())

    def fill(self, rows: Reader, labels: Reader, chunk: int, begin: int, out: Arrays) -> None:
        plain = {key: array for key, array in out.items() if key != self._name}
        if plain:
            rows.fill(chunk, begin, plain)
        (label,) = self._labels.columns
        row, done, wanted = int(self._starts[chunk]) + begin, 0, out[self._name]
        while done < len(wanted):
            place = int(np.searchsorted(self._label_starts, row, side="right")) - 1
            count = min(len(wanted) - done, int(self._label_starts[place + 1]) - row)
            part = {label.name: wanted[done : done + count]}
            labels.fill(place, row - int(self._label_starts[place]), part)
            row, done = row + count, done + count


class _BesideReader:
    def __init__(self, of: Beside, rows: Reader, labels: Reader) -> None:
        self._of, self._rows, self._labels = of, rows, labels

    def fill(self, chunk: int, begin: int, out: Arrays) -> None:
        self._of.fill(self._rows, self._labels, chunk, begin, out)
