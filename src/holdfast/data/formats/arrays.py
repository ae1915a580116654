"""An array as columns: which axis holds the channels or features, and its values as elements × columns."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from holdfast.data.formats.contract import PART_BYTES, Array, Chunk, Column, Numbers, Schema, Unreadable

CHANNELS = 4
LONGEST_ROW = 4 * PART_BYTES  # a longer one is read in pieces
MOST_COLUMNS = 65_536  # a wider row is looked at as one column of values
KINDS = "biufc"


@dataclass(frozen=True)
class Layout:
    """`axis`: of the channels, counted in the row's own shape; None when a row is one column of values."""

    dtype: np.dtype[np.generic]
    row_shape: tuple[int, ...]
    axis: int | None
    names: tuple[str, ...]

    @property
    def per_row(self) -> int:
        return math.prod(self.row_shape)

    @property
    def row_bytes(self) -> int:
        return self.per_row * self.dtype.itemsize

    def schema(self, rows: int) -> Schema:
        return Schema(tuple(Column(name, str(self.dtype)) for name in self.names), self.row_shape, rows)

    def chunk(self, values: Array) -> Chunk:
        """`values`: whole rows, the first axis counts them."""
        rows = len(values)
        if self.per_row == 0 or rows == 0:
            return Chunk(rows, ())
        native = values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))
        whole = np.ascontiguousarray(native)
        as_bytes = whole.view(np.uint8).reshape(rows, -1) if whole.dtype.kind != "c" else None
        if whole.dtype.kind == "c":
            whole = whole.view(whole.real.dtype).reshape(*whole.shape, 2)
        return Chunk(rows, self._blocks(whole, rows), as_bytes)

    def _blocks(self, whole: Array, rows: int) -> tuple[Numbers, ...]:
        width = len(self.names)
        if self.axis is None or self.axis == len(self.row_shape) - 1 or self.dtype.kind == "c":
            per_row = max(1, whole.size // rows // width)
            return (Numbers(0, whole.reshape(-1, width), per_row),)
        moved = np.moveaxis(whole, self.axis + 1, 1).reshape(rows, width, -1)
        return tuple(
            Numbers(number, np.ascontiguousarray(moved[:, number]).reshape(-1, 1), moved.shape[2])
            for number in range(width)
        )

    def flat_chunk(self, values: Array, first_element: int) -> Chunk:
        """A piece of rows too long to be held whole. The row it ends with counts when its last element is here."""
        last = first_element + len(values)
        rows = last // self.per_row - first_element // self.per_row
        native = values.astype(values.dtype.newbyteorder("="), copy=False)
        if native.dtype.kind == "c":
            native = native.view(native.real.dtype).reshape(-1, 2)
        return Chunk(rows, (Numbers(0, native.reshape(len(values), -1), self.per_row, first_element % self.per_row),))


def layout(dtype: np.dtype[np.generic], shape: tuple[int, ...], name: str) -> Layout:
    """Channels stand last, as TensorFlow has them, or second, as PyTorch has them; a series has its features last."""
    if dtype.kind not in KINDS:
        raise Unreadable(_refusal(dtype))
    row_shape = shape[1:]
    if dtype.kind == "c":
        return Layout(dtype, row_shape, None, ("real", "imaginary"))
    axis = _axis(dtype, row_shape) if math.prod(row_shape) * dtype.itemsize <= LONGEST_ROW else None
    if axis is None:
        return Layout(dtype, row_shape, None, (name,))
    return Layout(dtype, row_shape, axis, tuple(map(str, range(row_shape[axis]))))


def _axis(dtype: np.dtype[np.generic], row_shape: tuple[int, ...]) -> int | None:
    if not row_shape or math.prod(row_shape) == 0:
        return None
    if len(row_shape) == 1:
        return 0 if row_shape[0] <= MOST_COLUMNS else None
    if row_shape[-1] <= CHANNELS:
        return len(row_shape) - 1
    if len(row_shape) == 3 and row_shape[0] <= CHANNELS:
        return 0
    is_series = len(row_shape) == 2 and dtype.kind == "f" and row_shape[-1] <= MOST_COLUMNS
    return 1 if is_series else None


def _refusal(dtype: np.dtype[np.generic]) -> str:
    if dtype.hasobject:
        return "it holds Python objects, which only unpickling could read, and that may run any code; save it as plain numbers"
    return f"its type is {dtype}, which no model takes; save it as numbers"
