"""HDF5: every data set of numbers in a file. Links that lead out of the file are not followed."""

from __future__ import annotations

from pathlib import Path

import h5py

from holdfast.data.formats.contract import Opened, Unreadable
from holdfast.data.formats.stores import StoredArray

BROKEN: tuple[type[Exception], ...] = (OSError, RuntimeError, KeyError, ValueError, TypeError)


def open_tables(path: Path) -> Opened:
    opened = Opened()
    try:
        file = h5py.File(path, "r")
        names: list[str] = []
        file.visititems(lambda name, node: names.append(name) if isinstance(node, h5py.Dataset) else None)
    except BROKEN as error:
        raise Unreadable(f"it is no whole HDF5 file: {str(error)[:160]}") from None
    for name in names:
        try:
            data = file[name]
            if data.external or data.is_virtual:
                raise Unreadable("its values lie in other files, which are not looked into")
            opened.tables.append(StoredArray(path, name, "hdf5", data, BROKEN))
        except Unreadable as error:
            opened.troubles.append((name, str(error)))
        except BROKEN as error:
            opened.troubles.append((name, f"it cannot be read: {error}"))
    return opened
