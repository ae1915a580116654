"""The formats there are, and which of them a path is."""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, cast

from holdfast.data.formats.contract import NeedsPackage, Opened, Unreadable

# By ending: the module that reads it.
ENDINGS = {
    ".npy": "npy",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv_text",
    ".tsv": "csv_text",
    ".arrow": "arrow_ipc",
    ".feather": "arrow_ipc",
    ".ipc": "arrow_ipc",
}
FOLDERS: dict[str, str] = {}  # a folder that is one data set, by what is in it
PACKAGES = {
    "pyarrow": "pyarrow", "zarr": "zarr", "numcodecs": "zarr", "PIL": "pillow", "h5py": "h5py",
}  # fmt: skip


class Format(Protocol):
    """A module of this package."""

    def open_tables(self, path: Path) -> Opened: ...


def format_of(path: Path) -> str | None:
    if path.is_dir():
        return next((name for inner, name in FOLDERS.items() if (path / inner).is_file()), None)
    return ENDINGS.get(path.suffix.lower())


def open_path(path: Path) -> Opened:
    """All that is in a file, or in a folder that is one data set."""
    name = format_of(path)
    if name is None:
        raise Unreadable("no format that is known here")
    try:
        module = cast(Format, importlib.import_module(f"holdfast.data.formats.{name}"))
        return module.open_tables(path)
    except ModuleNotFoundError as error:
        if error.name not in PACKAGES:
            raise
        raise NeedsPackage(f"reading {path.name}", PACKAGES[error.name]) from None
    except Unreadable as error:
        return Opened(troubles=[("", str(error))])
    except OSError as error:
        return Opened(troubles=[("", error.strerror or str(error))])


def files_below(folder: Path) -> Iterator[Path]:
    """What can be read in it, in the order of names. Links to folders are not followed, hidden folders are left out."""
    if format_of(folder) is not None:
        yield folder
        return
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith("."):
            continue
        path = Path(entry.path)
        if entry.is_dir(follow_symlinks=False):
            yield from files_below(path)
        elif format_of(path) is not None:
            yield path
