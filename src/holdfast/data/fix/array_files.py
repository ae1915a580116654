"""Cleaned copies of arrays: .npy, .npz, Zarr and HDF5. Arrays that belong together lose the same rows."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np

from holdfast.data.audit.tables import label_column
from holdfast.data.fix.output import Output
from holdfast.data.fix.rules import CannotFix, Rules, cleaned, has_bad_label, is_bad, listed
from holdfast.data.formats.arrays import Layout
from holdfast.data.formats.contract import Array, Part, Table


class ArrayTable(Table, Protocol):
    layout: Layout

    def rows_of(self, part: Part) -> Array: ...


def by_channel(layout: Layout, values: Array) -> Array:
    """As rows × positions × columns: a view where it can be one."""
    rows, width = len(values), len(layout.names)
    if layout.axis is None or width == 1:
        return values.reshape(rows, -1, 1)
    return np.moveaxis(values, layout.axis + 1, -1).reshape(rows, -1, width)


def back(layout: Layout, values: Array) -> Array:
    if layout.axis is None or len(layout.names) == 1:
        return values.reshape(len(values), *layout.row_shape)
    others = [size for axis, size in enumerate(layout.row_shape) if axis != layout.axis]
    moved = values.reshape(len(values), *others, layout.row_shape[layout.axis])
    return np.moveaxis(moved, -1, layout.axis + 1)


def bad_rows(table: ArrayTable, rules: Rules) -> Array:
    """A mark for each row: it is left out."""
    marks = []
    label = label_column(table, rules.labels)
    for part in table.parts():
        values = by_channel(table.layout, _whole_rows(table, part))
        bad = is_bad(values)
        wrong = np.zeros(len(values), bool)
        if label is not None:
            wrong |= has_bad_label(values[:, :, label], bad[:, :, label], rules.classes).any(axis=1)
        if rules.drop_rows:
            wrong |= bad.any(axis=(1, 2))
        marks.append(wrong)
    return np.concatenate(marks) if marks else np.zeros(0, bool)


def _whole_rows(table: ArrayTable, part: Part) -> Array:
    key = part.key[0] if not isinstance(part.key, np.ndarray) else 0
    if isinstance(key, tuple) and isinstance(key[0], tuple):
        key = key[0]
    if isinstance(key, tuple) and len(key) == 1:
        raise CannotFix(f"{table.path}: its rows are too long to be cleaned one by one; split them")
    return table.rows_of(part)


def cleaned_rows(
    table: ArrayTable, rules: Rules, fills: dict[int, float], left_out: Array, output: Output, *, tells_rows: bool
) -> Iterator[Array]:
    """`tells_rows`: rows that are left out are listed, which is done once for arrays that lose the same ones."""
    label = label_column(table, rules.labels)
    names = [
        f"{table.member}.{name}" if table.member and len(table.layout.names) > 1 else table.member or name
        for name in table.layout.names
    ]
    row = 0
    for part in table.parts():
        values = _whole_rows(table, part)
        before = by_channel(table.layout, values)
        marks = left_out[row : row + len(values)]
        after, changed = before.copy(), np.zeros(before.shape, bool)
        for number in range(before.shape[2]):
            if number != label:
                after[:, :, number], changed[:, :, number] = cleaned(
                    before[:, :, number], is_bad(before[:, :, number]), fills.get(number), rules.clip
                )
        changed[marks] = False
        output.changes(listed(before, after, changed, row, names))
        for dropped in np.flatnonzero(marks) if tells_rows else ():
            output.drop(row + int(dropped), "not finite, or no label")
        yield back(table.layout, after)[~marks]
        row += len(values)


def write_npy(path: Path, table: ArrayTable, rows: int, pieces: Iterator[Array]) -> None:
    """The header as NumPy writes it; the number of rows is known before."""
    shape = (rows, *table.layout.row_shape)
    with open(path, "wb") as file:
        header = {"descr": np.lib.format.dtype_to_descr(table.layout.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, header)
        for piece in pieces:
            file.write(np.ascontiguousarray(piece).tobytes())


def write_npz(path: Path, written: Sequence[tuple[str, Path]]) -> None:
    """`written`: arrays as files, which are taken in and removed."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, file in written:
            archive.write(file, f"{name}.npy")
            file.unlink()


def write_store(path: Path, format: str, tables: Sequence[tuple[ArrayTable, int, Iterator[Array]]]) -> None:
    store = _hdf5_store(path) if format == "hdf5" else _zarr_store(path, tables)
    for table, rows, pieces in tables:
        array = store(table, rows)
        first = 0
        for piece in pieces:
            array[first : first + len(piece)] = piece
            first += len(piece)
        if format == "hdf5" and table is tables[-1][0]:
            array.file.close()


def _hdf5_store(path: Path) -> Callable[[ArrayTable, int], Any]:
    import h5py  # noqa: PLC0415 - an extra

    file = h5py.File(path, "w")

    def made(table: ArrayTable, rows: int) -> Any:
        source = cast(Any, table)._array
        chunks = source.chunks
        if chunks is not None and rows:
            chunks = (min(chunks[0], rows), *chunks[1:])
        data = file.create_dataset(
            table.member, (rows, *table.layout.row_shape), table.layout.dtype, chunks=chunks if rows else None,
            compression=source.compression if rows else None,
        )  # fmt: skip
        for name, value in source.attrs.items():
            data.attrs[name] = value
        return data

    return made


def _zarr_store(
    path: Path, tables: Sequence[tuple[ArrayTable, int, Iterator[Array]]]
) -> Callable[[ArrayTable, int], Any]:
    import zarr  # noqa: PLC0415 - an extra

    source = cast(Any, tables[0][0])._array
    version = source.metadata.zarr_format
    alone = len(tables) == 1 and not tables[0][0].member
    root = None if alone else zarr.open_group(str(path), mode="w", zarr_format=version)

    def made(table: ArrayTable, rows: int) -> Any:
        like = cast(Any, table)._array
        where: dict[str, Any] = (
            {"store": str(path)} if root is None else {"store": root.store_path, "name": table.member}
        )
        return zarr.create_array(
            **where, shape=(rows, *table.layout.row_shape), chunks=like.chunks, dtype=table.layout.dtype,
            zarr_format=version, attributes=dict(like.attrs),
        )  # fmt: skip

    return made
