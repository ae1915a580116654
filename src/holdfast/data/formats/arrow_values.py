"""Arrow arrays as NumPy's and the other way round, as they lie in memory. `to_numpy` and `pyarrow.array` import pandas wherever it is installed, for 0.2 s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.data.formats.contract import Array

NAMES = {"float": "float32", "double": "float64", "halffloat": "float16"}  # Arrow's, by NumPy's


def values_of(column: Any) -> Array:
    """Read-only. What stands where a null is does not matter; true and false are 1 and 0."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    dtype = np.dtype(NAMES.get(str(column.type), str(column.type)))
    content = column.buffers()[1]
    if content is None or not len(column):
        return np.empty(0, dtype)
    return np.frombuffer(content, dtype, len(column), column.offset * dtype.itemsize)


def mask_of(column: Any) -> Array:
    """Of true and false, without nulls."""
    return values_of(column).view(bool)


def as_arrow_mask(mask: Array) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, _bits(mask)])


def only_where(mask: Array, column: Any) -> Any:
    """Null elsewhere. Of a column of text that begins where its buffers do."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    return pa.Array.from_buffers(column.type, len(column), [_bits(mask), *column.buffers()[1:]])


def _bits(mask: Array) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    return pa.py_buffer(np.packbits(mask, bitorder="little"))


def as_arrow_words(words: Sequence[str]) -> Any:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    coded = [word.encode() for word in words]
    ends = np.cumsum([0, *map(len, coded)], dtype=np.int32)
    return pa.Array.from_buffers(pa.string(), len(words), [None, pa.py_buffer(ends), pa.py_buffer(b"".join(coded))])
