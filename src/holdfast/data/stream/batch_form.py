"""What a batch looks like to the user: an array, columns by name, or a pair of features and labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.data.stream.source import Arrays, CannotStream, Column, Reader, Source

FEATURES = "features"


class SideBySide:
    """The numbers of a table's row as one row of float32."""

    def __init__(self, table: Source, names: Sequence[str], labels: str) -> None:
        by_name = {column.name: column for column in table.columns}
        self._table, self._names, self._labels = table, tuple(names), labels
        self.columns: tuple[Column, ...] = (Column(FEATURES, (len(names),), np.dtype(np.float32)), by_name[labels])
        self.chunk_rows = table.chunk_rows

    def likeness(self) -> str:
        return f"{self._table.likeness()} {self._names} {self._labels}"

    def reader(self) -> Reader:
        return _SideBySideReader(self._table.reader(), self._names, self._labels)


class _SideBySideReader:
    def __init__(self, table: Reader, names: Sequence[str], labels: str) -> None:
        self._table, self._names, self._labels = table, names, labels

    def fill(self, chunk: int, begin: int, out: Arrays) -> None:
        matrix = out[FEATURES]
        parts = {name: matrix[:, number] for number, name in enumerate(self._names)}
        self._table.fill(chunk, begin, {**parts, self._labels: out[self._labels]})


class BatchForm:
    def __init__(self, columns: Sequence[Column], is_named: bool, labels: str | None) -> None:
        self._names = [column.name for column in columns if column.name != labels]
        self._labels = labels
        self._by_name = {column.name: column for column in columns}
        self._alone = len(self._names) == 1 and (labels is not None or not is_named)

    def of(self, values: Any) -> Any:
        """Of the columns' values by name: arrays of a batch, or what describes them."""
        features = values[self._names[0]] if self._alone else {name: values[name] for name in self._names}
        return features if self._labels is None else (features, values[self._labels])

    @property
    def columns(self) -> dict[str, Column]:
        return self._by_name


def chosen(columns: Sequence[Column], wanted: Sequence[str] | None, where: str) -> list[str]:
    names = [column.name for column in columns]
    missing = [name for name in wanted or () if name not in names]
    if missing:
        raise CannotStream(f"{where} has no column {missing[0]!r}; it has {', '.join(names[:20])}")
    return names if wanted is None else list(dict.fromkeys(wanted))
