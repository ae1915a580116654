"""Zarr, versions 2 and 3: every array of a store."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import zarr

from holdfast.data.formats.contract import Opened, Trouble, Unreadable
from holdfast.data.formats.stores import StoredArray

BROKEN: tuple[type[Exception], ...] = (
    ValueError,
    TypeError,
    KeyError,
    OSError,
    RuntimeError,
    NotImplementedError,
    AttributeError,
)


def open_tables(path: Path) -> Opened:
    opened = Opened()
    try:
        root = zarr.open(str(path), mode="r")
        arrays = list(_arrays("", root))
    except BROKEN as error:
        raise Unreadable(
            f"it is no whole Zarr store: {str(error).splitlines()[0][:160] if str(error) else error!r}"
        ) from None
    for name, array in arrays:
        try:
            table = StoredArray(path, name, "zarr", array, BROKEN)
            table.troubles = tuple(_not_there(array))
            opened.tables.append(table)
        except Unreadable as error:
            opened.troubles.append((name, str(error)))
    return opened


def _arrays(name: str, node: Any) -> Iterator[tuple[str, Any]]:
    if hasattr(node, "shape"):
        yield name, node
        return
    for key in sorted(node.keys()):
        yield from _arrays(f"{name}/{key}" if name else key, node[key])


def _not_there(array: Any) -> Iterator[Trouble]:
    """A chunk without a file reads as the fill value, and nobody hears of it."""
    absent = int(array.nchunks) - int(array.nchunks_initialized)
    if absent > 0:
        text = f"chunks of {array.nchunks:,} that have no file, so they read as {array.fill_value}: {{count}}"
        yield Trouble("unreadable", text, (), absent, breaks_training=False)
