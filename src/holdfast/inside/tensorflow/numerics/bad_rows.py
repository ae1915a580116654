"""Rows and columns of a batch that are not finite, and where they lie in the data they come from."""

from __future__ import annotations

import sys
from typing import Any, List, Optional, Sequence, Tuple

from ...numerics.events import ROWS, BadInput
from ...numerics.plain_numbers import kind_of, words

SEARCHED_BYTES = 256 << 20  # of the arrays that training was given
FAR_OUT = 1e6  # times the largest of all other rows: no measurement, but a code for "broken" or "missing"


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


def far_out(name: str, array: Any, rows: Sequence[int]) -> Optional[BadInput]:
    """Of rows with finite values, one of which made something overflow: those that are out of all proportion to the rest of
    the batch, with the columns in which they are. None where they are like the others."""
    numpy: Any = sys.modules["numpy"]
    if array.ndim < 2 or array.dtype.kind != "f" or not len(array) or not numpy.isfinite(array).all():
        return None
    sizes = numpy.abs(array.reshape(len(array), -1).astype("float64"))
    limit = FAR_OUT * max(float(numpy.delete(sizes, list(rows), axis=0).max(initial=0.0)), 1.0)
    beyond = sizes >= limit
    found = [int(row) for row in numpy.flatnonzero(beyond.any(axis=1)) if row in set(rows)]
    if not found or len(rows) >= len(array):
        return None
    bad: BadInput = {"name": name, "rows": found[:ROWS], "row_count": len(found)}
    bad["what"] = words(float(array.reshape(-1)[sizes.argmax()]))
    if array.ndim == 2:
        bad["columns"] = [int(column) for column in numpy.flatnonzero(beyond.any(axis=0))[:ROWS]]
    return bad


def indices_in(source: Any, batch: Any, rows: List[int], finite: bool = False) -> Tuple[List[int], Optional[bool]]:
    """Where these rows of a batch lie in the source, and whether all of the source is finite. Nothing where it is too
    large to be searched, or of another shape. `finite`: so are these rows."""
    numpy: Any = sys.modules["numpy"]
    if source.shape[1:] != batch.shape[1:] or source.nbytes > SEARCHED_BYTES or source.dtype.kind != "f":
        return [], None
    if finite:
        least = min(float(numpy.abs(batch[row]).max()) for row in rows)
        candidates = numpy.flatnonzero(numpy.abs(source).reshape(len(source), -1).max(axis=1) >= least)
    else:
        candidates = bad_rows(source)
    if not len(candidates):
        return [], True
    held, found = source[candidates].astype(batch.dtype), []
    for row in rows:
        same = numpy.isclose(held, batch[row], rtol=0, atol=0, equal_nan=True).reshape(len(held), -1).all(axis=1)
        found += [int(candidates[number]) for number in numpy.flatnonzero(same)[:1]]
    return found, False
