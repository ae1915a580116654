"""Columns of an Arrow batch as blocks: numbers without a copy where that is possible, text as text, lists as elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.data.formats.arrow_values import NAMES, mask_of, values_of
from holdfast.data.formats.contract import Array, Chunk, Column, Numbers, Texts


def columns_of(schema: Any) -> tuple[Column, ...]:
    return tuple(Column(field.name, _named(field.type)) for field in flat_fields(schema))


def _named(type: Any) -> str:
    return NAMES.get(str(type), str(type))


def flat_fields(schema: Any) -> list[Any]:
    """Fields of structs stand for themselves, named with a dot."""
    found: list[Any] = []
    for field in schema:
        found += (
            flat_fields([inner.with_name(f"{field.name}.{inner.name}") for inner in field.type])
            if pa.types.is_struct(field.type)
            else [field]
        )
    return found


def flat_columns(batch: Any) -> list[Any]:
    found: list[Any] = []
    for column in batch.columns:
        found += _inner(column)
    return found


def _inner(column: Any) -> list[Any]:
    if not pa.types.is_struct(column.type):
        return [column]
    return [deeper for inner in column.flatten() for deeper in _inner(inner)]


def first_flat(schema: Any) -> list[int]:
    """Of each column of the file, the number of its first flat one."""
    numbers, first = [], 0
    for field in schema:
        numbers.append(first)
        first += len(flat_fields([field]))
    return numbers or [0]


def chunk_of(batch: Any, first: int = 0, expects_numbers: Sequence[bool] = ()) -> Chunk:
    """`first`: the number of its first column. `expects_numbers`: of each, whether text in it was meant to be numbers."""
    blocks: list[Numbers | Texts] = []
    for number, column in enumerate(flat_columns(batch)):
        blocks += _blocks(first + number, column, bool(expects_numbers and expects_numbers[number]))
    return Chunk(batch.num_rows, tuple(blocks))


def _blocks(number: int, column: Any, expects_numbers: bool) -> Iterator[Numbers | Texts]:
    kind = column.type
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        yield Texts(number, column.cast(pa.large_string()), expects_numbers)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        yield from _elements(number, column)
    elif (values := _numbers(column)) is not None:
        missing = _nulls(column)
        yield Numbers(number, values.reshape(-1, 1), missing=None if missing is None else missing.reshape(-1, 1))
    elif column.null_count:
        nothing = np.zeros((len(column), 1), np.uint8)
        missing = _nulls(column)
        yield Numbers(number, nothing, missing=None if missing is None else missing.reshape(-1, 1))


def _numbers(column: Any) -> Array | None:
    """0 where a null is."""
    kind = column.type
    if pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        return None
    missing = _nulls(column)
    values = values_of(column)
    return values if missing is None else np.where(missing, values.dtype.type(0), values)


def _nulls(column: Any) -> Array | None:
    if not column.null_count:
        return None
    return mask_of(column.is_null())


def _elements(number: int, column: Any) -> Iterator[Numbers]:
    """Each with the row of its list."""
    flat = column.flatten()
    if pa.types.is_list(flat.type) or pa.types.is_large_list(flat.type) or pa.types.is_fixed_size_list(flat.type):
        flat, lengths = _flattened_twice(column)
    else:
        lengths = _lengths(column)
    values = _numbers(flat)
    if values is not None:
        row_of = np.repeat(np.arange(len(column)), lengths)
        missing = _nulls(flat)
        yield Numbers(
            number, values.reshape(-1, 1), row_of=row_of, missing=None if missing is None else missing.reshape(-1, 1)
        )


def _lengths(column: Any) -> Array:
    import pyarrow.compute as pc  # noqa: PLC0415

    return values_of(pc.fill_null(pc.list_value_length(column), 0))


def _flattened_twice(column: Any) -> tuple[Any, Array]:
    """A list of lists, as matrices are kept: all elements of a row, whatever the depth."""
    flat, owner = column, np.arange(len(column))
    while pa.types.is_list(flat.type) or pa.types.is_large_list(flat.type) or pa.types.is_fixed_size_list(flat.type):
        owner = np.repeat(owner, _lengths(flat))
        flat = flat.flatten()
    return flat, np.bincount(owner, minlength=len(column))


def with_rows(chunk: Chunk, row_of: Array, rows: int) -> Chunk:
    """The rows of a chunk are not all there: each of its elements, one a row, gets the row it stands in."""
    return replace(chunk, rows=rows, blocks=tuple(replace(block, row_of=row_of) for block in chunk.blocks))
