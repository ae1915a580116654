"""A hash for each row of a table whose columns come one by one: numbers and text."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.data.audit.duplicates import SEED, scrambled
from holdfast.data.formats.arrow_values import mask_of
from holdfast.data.formats.contract import Array, Chunk, Numbers, Texts

_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so it has an inverse modulo 2**64
_INVERSE = np.uint64(pow(int(_BASE), -1, 1 << 64))
_NULL = np.uint64(SEED)
BLOCK_ROWS = 1 << 15  # stay in the cache


def sums_of_blocks(chunk: Chunk) -> Array:
    """To be added up with those of the other columns, and scrambled then."""
    total: Array = np.zeros(chunk.rows, np.uint64)
    row_of = next((block.row_of for block in chunk.blocks if block.row_of is not None), None)
    if row_of is not None and len(row_of) < chunk.rows:  # rows that could not be parsed are like no other
        left_out = np.delete(np.arange(chunk.rows), np.unique(row_of))
        total[left_out] = np.random.default_rng().integers(1, 1 << 63, len(left_out), dtype=np.uint64)
    for block in chunk.blocks:
        if isinstance(block, Texts):
            rows = slice(None) if block.row_of is None else block.row_of
            total[rows] += _of_text(block.values) * _factor(block.column)
        else:
            _add_numbers(total, block)
    return total


def _factor(column: int) -> np.uint64:
    return np.uint64((int(_BASE) * (2 * column + 1) + 2 * (column * column * 0xD1B54A32D192ED03)) % (1 << 64) | 1)


def _add_numbers(total: Array, block: Numbers) -> None:
    words = _words(block)
    for number in range(words.shape[1]):
        factor = _factor(block.first_column + number)
        if block.row_of is not None or block.per_row > 1:
            place = np.arange(len(words), dtype=np.uint64)
            rows = block.row_of if block.row_of is not None else np.arange(len(words)) // block.per_row
            starts = np.searchsorted(rows, np.arange(len(total))).astype(np.uint64)
            np.add.at(total, rows, scrambled(words[:, number] * factor + (place - starts[rows])))
            continue
        for start in range(0, len(total), BLOCK_ROWS):
            total[start : start + BLOCK_ROWS] += words[start : start + BLOCK_ROWS, number] * factor


def _words(block: Numbers) -> Array:
    """The bits of each value; those that differ between round numbers are brought to the low end."""
    values = np.ascontiguousarray(block.values)
    size = values.dtype.itemsize
    if size not in (1, 2, 4, 8):
        values, size = values.astype(np.float64), 8
    words = values.view(f"u{size}")
    if values.dtype.kind == "f" and size >= 4:
        words = words ^ (words >> words.dtype.type(43 if size == 8 else 16))
    if block.missing is not None:
        words = np.where(block.missing, words.dtype.type(SEED % 251), words)
    return words


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
        hashed = np.where(mask_of(flat.is_null()), _NULL, hashed)
    return hashed
