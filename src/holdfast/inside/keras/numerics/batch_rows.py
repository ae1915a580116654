"""Rows of a batch: how many, all but some, and what they are known by."""

from __future__ import annotations

import sys
import zlib
from typing import Any, Collection, Sequence

from .examination import as_tensors


def rows_in(batch: Any, tf: Any) -> int:
    """0 where its parts do not share a first axis."""
    leaves = [one for one in tf.nest.flatten(as_tensors(batch, tf)) if one is not None]
    if not leaves or any(not isinstance(one, tf.Tensor) or not one.shape.rank for one in leaves):
        return 0
    sizes = {int(one.shape[0]) for one in leaves}
    return sizes.pop() if len(sizes) == 1 else 0


def without_rows(batch: Any, bad: Collection[int], tf: Any) -> Any:
    """The other rows; None where there are none."""
    good = [row for row in range(rows_in(batch, tf)) if row not in bad]
    if not good:
        return None
    return tf.nest.map_structure(
        lambda one: tf.gather(one, good) if isinstance(one, tf.Tensor) else one, as_tensors(batch, tf)
    )


def content_of(batch: Any, rows: Sequence[int], tf: Any) -> int:
    """A number that these rows are known by, in whatever order; those of the whole batch where there are none."""
    numpy: Any = sys.modules["numpy"]
    mark = 0
    for leaf in tf.nest.flatten(as_tensors(batch, tf)):
        if isinstance(leaf, tf.Tensor) and leaf.dtype != tf.string and leaf.shape.rank:
            array = leaf.__array__()
            for row in rows if rows and rows_in(batch, tf) else range(len(array)):
                mark ^= zlib.crc32(numpy.ascontiguousarray(array[row]).tobytes())
    return mark
