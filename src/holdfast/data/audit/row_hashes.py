"""A hash for each row of a table whose columns come one by one: numbers and text."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.data.audit.duplicates import SEED, scrambled
from holdfast.data.formats.contract import Array, Chunk, Numbers, Texts

_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so it has an inverse modulo 2**64
_INVERSE = np.uint64(pow(int(_BASE), -1, 1 << 64))
_NULL = np.uint64(SEED)


def hash_of_blocks(chunk: Chunk) -> Array:
    total: Array = np.zeros(chunk.rows, np.uint64)
    for block in chunk.blocks:
        if isinstance(block, Texts):
            total = scrambled(total + np.uint64(2 * block.column + 1)) ^ _of_text(block.values)
        else:
            _mix_in(total, block, chunk.rows)
    return scrambled(total)


def _mix_in(total: Array, block: Numbers, rows: int) -> None:
    words = _words(block)
    for number in range(words.shape[1]):
        column = scrambled(
            words[:, number] + np.uint64(0x632BE59BD9B4E019) * np.uint64(block.first_column + number + 1)
        )
        if block.row_of is not None:
            np.add.at(total, block.row_of, scrambled(column + np.arange(len(column), dtype=np.uint64)))
        elif block.per_row > 1:
            total += scrambled(column.reshape(rows, -1) + np.arange(block.per_row, dtype=np.uint64)).sum(axis=1)
        else:
            total += column


def _words(block: Numbers) -> Array:
    values = block.values.astype(np.float64) if block.values.dtype.kind == "f" else block.values.astype(np.int64)
    words = np.ascontiguousarray(values).view(np.uint64)
    return words if block.missing is None else np.where(block.missing, _NULL, words)


def _of_text(values: Any) -> Array:
    """Of the bytes of each: a polynomial, by differences of one running sum over all of them."""
    import pyarrow as pa  # noqa: PLC0415 - an extra; there is no column of text without it

    flat = values.cast(pa.large_string())
    offsets = np.frombuffer(flat.buffers()[1], np.int64)[flat.offset : flat.offset + len(flat) + 1]
    data = flat.buffers()[2]
    content = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]] if data is not None else np.empty(0, np.uint8)
    starts = offsets - offsets[0]
    powers = np.cumprod(np.full(len(content) + 1, _BASE), dtype=np.uint64)
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(powers[:-1] * (content + np.uint64(1)), dtype=np.uint64)])
    inverse = np.cumprod(np.full(len(content) + 1, _INVERSE), dtype=np.uint64)
    hashed = scrambled(
        (sums[starts[1:]] - sums[starts[:-1]]) * inverse[starts[:-1]] + np.diff(starts).astype(np.uint64)
    )
    if flat.null_count:
        hashed = np.where(np.asarray(flat.is_null().to_numpy(zero_copy_only=False), bool), _NULL, hashed)
    return hashed
