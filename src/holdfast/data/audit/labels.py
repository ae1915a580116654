"""The labels of a table: how many of each class, and which are none of the classes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from holdfast.data.audit.columns import PLACES
from holdfast.data.formats.contract import Array, Numbers

MOST_LABELS = 10_000  # distinct ones; beyond that it is no label but a measurement


@dataclass
class Labels:
    """`classes`: how many there are, numbered from 0; None when nobody said."""

    column: int
    classes: int | None = None
    counts: dict[float, int] = field(default_factory=dict)
    outside: int = 0
    places: list[int] = field(default_factory=list)
    rows: int = 0
    too_many: bool = False

    def look(self, block: Numbers) -> None:
        number = self.column - block.first_column
        if not 0 <= number < block.values.shape[1]:
            return
        values = block.values[:, number]
        present = np.isfinite(values) if values.dtype.kind == "f" else np.ones(len(values), bool)
        if block.missing is not None:
            present &= ~block.missing[:, number]
        self._count(values[present])
        if self.classes is None:
            return
        wrong = present & ((values < 0) | (values >= self.classes))
        if values.dtype.kind == "f":
            wrong |= present & (values != np.floor(values))
        self.outside += int(wrong.sum())
        for element in np.flatnonzero(wrong)[: PLACES - len(self.places)]:
            self.places.append(block.row(int(element)))

    def _count(self, values: Array) -> None:
        if self.too_many:
            return
        for value, count in zip(*np.unique(values, return_counts=True), strict=True):
            self.counts[float(value)] = self.counts.get(float(value), 0) + int(count)
        self.too_many = len(self.counts) > MOST_LABELS
        if self.too_many:
            self.counts.clear()

    def merge(self, later: Labels, is_beside: bool = False) -> None:
        before = 0 if is_beside else self.rows
        self.outside += later.outside
        self.places += [row + before for row in later.places][: PLACES - len(self.places)]
        self.rows = self.rows if is_beside else before + later.rows
        self.too_many = self.too_many or later.too_many
        for value, count in later.counts.items():
            self.counts[value] = self.counts.get(value, 0) + count
        if self.too_many or len(self.counts) > MOST_LABELS:
            self.too_many = True
            self.counts.clear()
