"""The same table in every format, as the usual libraries write it."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import zarr
from pyarrow import feather

from holdfast.data.formats.contract import Array

ROWS_TOGETHER = 7  # in a row group, a chunk or a batch


def npy(path: Path, values: Array) -> Path:
    np.save(path.with_suffix(".npy"), values)
    return path.with_suffix(".npy")


def npy_by_columns(path: Path, values: Array) -> Path:
    return npy(path, np.asfortranarray(values))


def npz(path: Path, values: Array) -> Path:
    np.savez_compressed(path.with_suffix(".npz"), x=values)
    return path.with_suffix(".npz")


def _table(values: Array) -> pa.Table:
    return pa.table([pa.array(column) for column in values.T], names=list(map(str, range(values.shape[1]))))


def parquet(path: Path, values: Array) -> Path:
    pq.write_table(_table(values), path.with_suffix(".parquet"), row_group_size=ROWS_TOGETHER)
    return path.with_suffix(".parquet")


def arrow(path: Path, values: Array) -> Path:
    feather.write_feather(_table(values), str(path.with_suffix(".feather")), chunksize=ROWS_TOGETHER)
    return path.with_suffix(".feather")


def csv(path: Path, values: Array) -> Path:
    names = ",".join(f"c{number}" for number in range(values.shape[1]))
    lines = [",".join(repr(float(value)) for value in row) for row in values]
    path.with_suffix(".csv").write_text("\n".join([names, *lines]) + "\n")
    return path.with_suffix(".csv")


def zarr_2(path: Path, values: Array) -> Path:
    return _zarr(path, values, 2)


def zarr_3(path: Path, values: Array) -> Path:
    return _zarr(path, values, 3)


def _zarr(path: Path, values: Array, version: int) -> Path:
    store = path.with_suffix(".zarr")
    array = zarr.create_array(
        store=str(store), shape=values.shape, chunks=(ROWS_TOGETHER, values.shape[1]), dtype=values.dtype,
        zarr_format=version, config={"write_empty_chunks": True},
    )  # fmt: skip
    array[:] = values
    return store


def hdf5(path: Path, values: Array) -> Path:
    with h5py.File(path.with_suffix(".h5"), "w") as file:
        file.create_dataset(
            "x", data=values, chunks=(min(ROWS_TOGETHER, len(values)), values.shape[1]) if len(values) else None
        )
    return path.with_suffix(".h5")


def _message(number: int, content: bytes) -> bytes:
    return bytes([number << 3 | 2]) + _varint(len(content)) + content


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def example(features: dict[str, bytes]) -> bytes:
    """`features`: each already a Feature's list, as `floats` and `integers` make them."""
    entries = b"".join(_message(1, _message(1, name.encode()) + _message(2, of)) for name, of in features.items())
    return _message(1, entries)


def floats(values: Array) -> bytes:
    return _message(2, _message(1, values.astype("<f4").tobytes()))


def integers(values: list[int]) -> bytes:
    return _message(3, _message(1, b"".join(_varint(value % (1 << 64)) for value in values)))


def _masked(content: bytes) -> bytes:
    crc = google_crc32c.value(content)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def framed(record: bytes) -> bytes:
    length = struct.pack("<Q", len(record))
    return length + _masked(length) + record + _masked(record)


def tfrecord(path: Path, values: Array) -> Path:
    """A feature for each column."""
    records = (example({str(number): floats(row[number : number + 1]) for number in range(len(row))}) for row in values)
    path.with_suffix(".tfrecord").write_bytes(b"".join(map(framed, records)))
    return path.with_suffix(".tfrecord")


WRITERS: tuple[Callable[[Path, Array], Path], ...] = (
    npy, npy_by_columns, npz, parquet, arrow, csv, zarr_2, zarr_3, hdf5, tfrecord,
)  # fmt: skip
