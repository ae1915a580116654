"""Values in place of those that are not finite, where rows with such values come in batch after batch and cannot all be left out."""

from __future__ import annotations

import sys
from typing import Any


def fill_of(array: Any) -> Any:
    """By column (the last axis) the mean of the finite values in this batch; 0 where there is none."""
    numpy: Any = sys.modules["numpy"]
    rows = array.reshape(-1, array.shape[-1]) if array.ndim > 1 else array.reshape(-1, 1)
    good = numpy.isfinite(rows)
    count = good.sum(axis=0)
    total = numpy.where(good, rows, 0).astype("float64").sum(axis=0)
    fill = numpy.where(count > 0, total / numpy.maximum(count, 1), 0.0).astype(array.dtype)
    return fill if array.ndim > 1 else fill[0]


def filled(array: Any, fill: Any) -> Any:
    """A copy; None where all of it is finite."""
    numpy: Any = sys.modules["numpy"]
    good = numpy.isfinite(array)
    return None if good.all() else numpy.where(good, array, fill).astype(array.dtype)


def in_words(name: str, step: int) -> str:
    return (
        f"from step {step} on, what is not finite in {name} is replaced by the mean of its column (of the finite values of one batch): "
        "rows with such values come in batch after batch"
    )
