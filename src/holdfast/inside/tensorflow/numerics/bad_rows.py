"""Rows and columns of a batch that are not finite, and where they lie in the data they come from."""

from __future__ import annotations

import sys
from typing import Any, List, Optional, Tuple

from ...numerics.events import ROWS, BadInput
from ...numerics.plain_numbers import kind_of

SEARCHED_BYTES = 256 << 20  # of the arrays that training was given


def bad_rows(array: Any) -> Any:
    """Numbers of the rows with something non-finite in them."""
    numpy: Any = sys.modules["numpy"]
    good = numpy.isfinite(array)
    return numpy.flatnonzero(~good.reshape(len(array), -1).all(axis=1)) if array.ndim else numpy.array([0])


def describe(name: str, array: Any) -> Optional[BadInput]:
    """None where all of it is finite."""
    numpy: Any = sys.modules["numpy"]
    if numpy.isfinite(array).all():
        return None
    rows = bad_rows(array)
    found: BadInput = {
        "name": name,
        "rows": [int(row) for row in rows[:ROWS]],
        "row_count": len(rows),
        "what": kind_of(
            int(numpy.isnan(array).sum()), int(numpy.isposinf(array).sum()), int(numpy.isneginf(array).sum())
        )
        or "NaN",
    }
    if array.ndim == 2:
        columns = numpy.flatnonzero(~numpy.isfinite(array).all(axis=0))
        found["columns"] = [int(column) for column in columns[:ROWS]]
    return found


def indices_in(source: Any, batch: Any, rows: List[int]) -> Tuple[List[int], Optional[bool]]:
    """Where these rows of a batch lie in the source, and whether all of the source is finite. Nothing where it is too
    large to be searched, or of another shape."""
    numpy: Any = sys.modules["numpy"]
    if source.shape[1:] != batch.shape[1:] or source.nbytes > SEARCHED_BYTES or source.dtype.kind != "f":
        return [], None
    candidates = bad_rows(source)
    if not len(candidates):
        return [], True
    held, found = source[candidates].astype(batch.dtype), []
    for row in rows:
        same = numpy.isclose(held, batch[row], rtol=0, atol=0, equal_nan=True).reshape(len(held), -1).all(axis=1)
        found += [int(candidates[number]) for number in numpy.flatnonzero(same)[:1]]
    return found, False
