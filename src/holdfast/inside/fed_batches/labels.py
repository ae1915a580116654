"""Labels that the model has no output for: which rows of a batch hold one, and whether those rows may be left out.

A few such rows are slips of the data. Where many are, or several have the same label, the model or the data is wrong as a whole: nothing
is left out then, since the run would train on something else than what was meant.
"""

from __future__ import annotations

import sys
from typing import Any, List, Optional, Set, TypedDict

from ..numerics.events import ROWS

RARE = 0.02  # of the rows that were seen
ENOUGH_ROWS = 50  # before anything is said to be rare
A_CLASS = 3  # different rows with one label are a class that the model does not know


class BadLabels(TypedDict, total=False):
    name: str
    rows: List[int]
    row_count: int
    of_rows: int
    values: List[int]
    classes: int
    indices: List[int]  # of the data set


class LabelRange:
    """Of one place in the batches of one data set."""

    def __init__(self, name: str, classes: int, ignored: Optional[int]) -> None:
        self.name, self.classes, self._ignored = name, classes, ignored
        self._rows_seen = self._bad_rows = 0
        self._values: Set[int] = set()  # that did not fit
        self._has_zero = False
        self._different: Set[int] = set()  # rows that had them, by their content
        self.times = 0  # that rows were left out

    def find(self, array: Any) -> List[int]:
        """Rows of the batch with a label that is out of range; 2.4 µs where there is none, of 64 labels."""
        self._rows_seen += len(array)
        least = array.min() if array.size else 0
        self._has_zero = self._has_zero or least == 0
        if least >= 0 and (not array.size or array.max() < self.classes):
            return []
        numpy: Any = sys.modules["numpy"]
        return numpy.flatnonzero(self._outside(array.reshape(len(array), -1)).any(axis=1)).tolist()  # type: ignore[no-any-return]

    def _outside(self, array: Any) -> Any:
        outside = (array < 0) | (array >= self.classes)
        return outside if self._ignored is None else outside & (array != self._ignored)

    def told(self, array: Any, rows: List[int]) -> BadLabels:
        chosen = array.reshape(len(array), -1)[rows]
        values = sorted({int(value) for value in chosen[self._outside(chosen)]})
        self._values.update(values[:ROWS])
        return {
            "name": self.name,
            "rows": rows[:ROWS],
            "row_count": len(rows),
            "of_rows": len(array),
            "values": values[:ROWS],
            "classes": self.classes,
        }

    def may_leave_out(self, of_rows: int, contents: List[int]) -> bool:
        """`contents`: of each bad row a number that it is known by when it comes again."""
        self._bad_rows += len(contents)
        if len(self._different) < A_CLASS:
            self._different.update(contents)
        is_a_class = len(self._values) == 1 and len(self._different) >= A_CLASS
        is_a_class = is_a_class or (self._values == {self.classes} and not self._has_zero)  # they count from 1
        rare = self._rows_seen >= ENOUGH_ROWS and self._bad_rows <= 1 + RARE * self._rows_seen
        if not rare or is_a_class or len(contents) >= of_rows:
            return False
        self.times += 1
        return True


def in_words(bad: BadLabels) -> str:
    rows = ", ".join(str(row) for row in bad["rows"]) + (", …" if bad["row_count"] > len(bad["rows"]) else "")
    values = ", ".join(str(value) for value in bad["values"])
    return (
        f"{'row' if bad['row_count'] == 1 else 'rows'} {rows}, labelled {values}: "
        f"the model has {bad['classes']} outputs, for 0 to {bad['classes'] - 1}"
    )
