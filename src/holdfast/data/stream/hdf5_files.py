"""HDF5 by path: each process opens the file for itself, since a handle does not outlive a fork or a pickle."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast.data.stream.array_likes import SlicedRows
from holdfast.data.stream.npy_files import stamp
from holdfast.data.stream.source import CannotStream


class StoredDataset:
    """What an array has to have to be sliced."""

    def __init__(self, path: Path, name: str, dataset: Any) -> None:
        self._path, self._name = path, name
        self.shape, self.dtype, self.chunks = dataset.shape, dataset.dtype, dataset.chunks
        self._opened: tuple[int, Any] = (0, None)

    def __getitem__(self, rows: slice) -> Any:
        import h5py  # noqa: PLC0415

        process, dataset = self._opened
        if process != os.getpid():
            dataset = h5py.File(self._path, "r")[self._name]
            self._opened = (os.getpid(), dataset)
        try:
            return dataset[rows]
        except (OSError, RuntimeError) as error:
            raise CannotStream(
                f"{self._path}, {self._name}: rows from {rows.start} on cannot be read: {error}"
            ) from None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_opened": (0, None)}


def hdf5_rows(path: Path, columns: Sequence[str] | None) -> SlicedRows:
    try:
        import h5py  # noqa: PLC0415
    except ImportError:
        raise CannotStream(f"{path} is read with h5py: pip install h5py") from None
    found: dict[str, StoredDataset] = {}

    def take(name: str, node: Any) -> None:
        is_wanted = isinstance(node, h5py.Dataset) and (columns is None or name in columns)
        if is_wanted and node.shape and node.dtype.kind in "biuf" and not node.external and not node.is_virtual:
            found[name] = StoredDataset(path, name, node)

    try:
        with h5py.File(path, "r") as file:
            file.visititems(take)
    except (OSError, RuntimeError) as error:
        raise CannotStream(f"{path} cannot be read: {str(error).splitlines()[0]}") from None
    if not found:
        raise CannotStream(
            f"{path} has no array of numbers{'' if columns is None else ' named ' + ' or '.join(columns)}"
        )
    return SlicedRows(dict(found), stamp(path))
