"""A path or an array becomes a source."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.data.formats import IMAGES, PACKED, SHARD
from holdfast.data.formats.unpacked import is_packed
from holdfast.data.stream.array_likes import DaskRows, SlicedRows, is_dask, zarr_rows
from holdfast.data.stream.hdf5_files import hdf5_rows
from holdfast.data.stream.image_files import ImageRows
from holdfast.data.stream.joined import OneAfterAnother
from holdfast.data.stream.npy_files import NpyRows, npy_array, npz_arrays
from holdfast.data.stream.source import CannotStream, Source
from holdfast.data.stream.tables import CsvRows, ParquetRows
from holdfast.data.stream.tfrecord_files import TfrecordRows

ONE = "x"  # the name of the only column of data that has no names
DELIMITERS = {".csv": ",", ".tsv": "\t"}
PARQUET = (".parquet", ".pq")
TFRECORD = ".tfrecord"
HDF5 = (".h5", ".hdf5")
KINDS = (".npy", ".npz", *DELIMITERS, *PARQUET, ".zarr", TFRECORD, *HDF5)
COMPRESSED = "{} is compressed, so its rows cannot be read from the middle: gunzip it first"
Size = tuple[int, int]


class Opened(NamedTuple):
    source: Source
    is_named: bool  # its columns have names of their own
    is_table: bool  # each of them is a number or a text


def opened(data: Any, columns: Sequence[str] | None, labels: str = "", image_size: Size | None = None) -> Opened:
    if isinstance(data, (str, Path)):
        path = Path(data).expanduser()
        if not path.exists():
            raise CannotStream(f"{path} does not exist")
        if path.is_dir() and not _is_zarr(path):
            return _folder(path, columns, labels, image_size)
        return _file(path, columns, labels)
    if isinstance(data, dict):
        return Opened(SlicedRows({str(name): _sliced(array) for name, array in data.items()}), True, False)
    if is_dask(data):
        return Opened(DaskRows(data, ONE), False, False)
    return Opened(SlicedRows({ONE: _sliced(data)}), False, False)


def _sliced(data: Any) -> Any:
    if not hasattr(data, "shape") or not hasattr(data, "dtype") or not len(data.shape):
        raise CannotStream(f"a {type(data).__name__} is no path and no array")
    return data


def _is_zarr(path: Path) -> bool:
    return path.suffix == ".zarr" or any((path / name).exists() for name in ("zarr.json", ".zarray", ".zgroup"))


def _file(path: Path, columns: Sequence[str] | None, labels: str) -> Opened:
    kind = _kind(path)
    if kind == PACKED or (kind in DELIMITERS and is_packed(path)):
        raise CannotStream(COMPRESSED.format(path))
    if path.is_dir():
        found = zarr_rows(path, columns)
        return Opened(found, len(found.columns) > 1, False)
    if kind == ".npy":
        return Opened(NpyRows({ONE: npy_array(path)}), False, False)
    if kind == ".npz":
        return Opened(NpyRows(npz_arrays(path, columns)), True, False)
    if kind in DELIMITERS:
        return Opened(CsvRows(path, columns, DELIMITERS[kind], labels), True, True)
    if kind in PARQUET:
        return Opened(ParquetRows(path, columns), True, True)
    if kind == TFRECORD:
        return Opened(TfrecordRows(path, columns), True, True)
    if kind in HDF5:
        stored = hdf5_rows(path, columns)
        return Opened(stored, len(stored.columns) > 1, False)
    raise CannotStream(
        f"{path}: files of this kind are not read; those that are: {', '.join(KINDS)}, and folders of them or of images"
    )


def _kind(path: Path) -> str:
    """By its ending; shards of TFRecord have it anywhere in their name."""
    ending = path.suffix.lower()
    is_record = ending not in KINDS and path.is_file() and SHARD.search(path.name) is not None
    return TFRECORD if is_record or ending == ".tfrecords" else ending


def _folder(path: Path, columns: Sequence[str] | None, labels: str, image_size: Size | None) -> Opened:
    """Files of one kind, in the order of their names."""
    by_kind: dict[str, list[Path]] = {}
    for one in sorted(path.rglob("*")):
        kind = "images" if one.suffix.lower() in IMAGES else _kind(one)
        if (kind in KINDS or kind == "images") and (one.is_file() or kind == ".zarr"):
            by_kind.setdefault(kind, []).append(one)
    if len(by_kind) != 1:
        if not by_kind and any(path.rglob(f"*{PACKED}")):
            raise CannotStream(COMPRESSED.format(f"what {path} holds"))
        found = ", ".join(sorted(by_kind)) or "none"
        raise CannotStream(f"{path}: one kind of file is needed, found {found} (of {', '.join(KINDS)}, images)")
    if "images" in by_kind:
        images = ImageRows(path, columns, image_size)
        return Opened(images, len(images.columns) > 1, False)
    (files,) = by_kind.values()
    parts = [(str(one), _file(one, columns, labels)) for one in files]
    first = parts[0][1]
    whole = OneAfterAnother([(name, part.source) for name, part in parts])
    return Opened(whole, first.is_named, first.is_table)
