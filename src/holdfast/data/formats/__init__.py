"""The formats there are, and which of them a path is."""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol, cast

from holdfast.data.formats.contract import NeedsPackage, Opened, Unreadable

# By ending: the module that reads it.
ENDINGS = {
    ".npy": "npy",
    ".npz": "npz",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".csv": "csv_text",
    ".tsv": "csv_text",
    ".arrow": "arrow_ipc",
    ".feather": "arrow_ipc",
    ".ipc": "arrow_ipc",
    ".tfrecord": "tfrecord",
    ".tfrecords": "tfrecord",
    ".h5": "hdf5",
    ".hdf5": "hdf5",
    ".tar": "webdataset",
}
PACKED = ".gz"
UNPACKED = ("csv_text", "tfrecord")  # formats that are also read as gzip packs them
IMAGES = frozenset((".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm"))
ZARR = ("zarr.json", ".zarray", ".zgroup")  # what lies in a folder that is a store
SHARD = re.compile(r"tfrecords?\b|-\d{5}-of-\d{5}$")
# What a download leaves in the place of the data: how it begins, and what to do.
STAND_INS = (
    (re.compile(rb"version https://git-lfs\b"), "it is a Git LFS pointer, not the data; run git lfs pull"),
    (re.compile(rb"\s*<(!doctype )?html\b", re.IGNORECASE), "it is a web page, not the data; download it again"),
)
SPLITS = re.compile(r"^(train(ing)?|val(id|idation)?|dev|test(ing)?|eval)$", re.IGNORECASE)
PACKAGES = {
    "numpy": "numpy", "pyarrow": "pyarrow", "zarr": "zarr", "PIL": "pillow", "h5py": "h5py", "google_crc32c": "google-crc32c",
}  # fmt: skip


class Format(Protocol):
    """A module of this package."""

    def open_tables(self, path: Path) -> Opened: ...


def format_of(path: Path) -> str | None:
    """Of a file, or of a folder that is one data set."""
    if path.is_dir():
        if any((path / name).is_file() for name in ZARR):
            return "zarr_store"
        return "images" if _has_images(path) else None
    ending = path.suffix.lower()
    if ending == ".json":
        return "coco" if _is_coco(path) else None
    name = path.stem if ending == PACKED else path.name
    found = ENDINGS.get(Path(name).suffix.lower()) or ("tfrecord" if SHARD.search(name) else None)
    return found if ending != PACKED or found in UNPACKED else None


def _is_coco(path: Path) -> bool:
    from holdfast.data.formats.coco import is_coco  # noqa: PLC0415 - most folders have no such file

    return is_coco(path)


def _has_images(folder: Path) -> bool:
    return any(path.suffix.lower() in IMAGES for path in folder.rglob("*"))


def open_path(path: Path) -> Opened:
    """All that is in a file, or in a folder that is one data set."""
    name = format_of(path)
    if name is None:
        raise Unreadable("no format that is known here")
    try:
        if instead := _stands_in(path):
            return Opened(troubles=[("", instead)])
        module = cast(Format, importlib.import_module(f"holdfast.data.formats.{name}"))
        return module.open_tables(path)
    except ModuleNotFoundError as error:
        package = PACKAGES.get((error.name or "").partition(".")[0])
        if package is None:
            raise
        raise NeedsPackage(f"reading {path.name}", package) from None
    except Unreadable as error:
        return Opened(troubles=[("", str(error))])
    except OSError as error:
        return Opened(troubles=[("", error.strerror or str(error))])


def _stands_in(path: Path) -> str | None:
    if path.is_dir():
        return None
    with path.open("rb") as file:
        start = file.read(64)
    return next((words for form, words in STAND_INS if form.match(start)), None)


def files_below(folder: Path) -> list[Path]:
    """What can be read in it, in the order of names; images as one set, or as one for each split."""
    if any((folder / name).is_file() for name in ZARR):
        return [folder]
    files, images = list[Path](), list[Path]()
    for path in _walk(folder):
        (images if path.suffix.lower() in IMAGES else files).append(path)
    known = [path for path in files if format_of(path) is not None]
    return [*known, *sorted({_set_of(image, folder) for image in images})]


def _set_of(image: Path, folder: Path) -> Path:
    place = folder
    for part in image.relative_to(folder).parts[:-1]:
        place = place / part
        if SPLITS.match(part):
            return place
    return folder


def _walk(folder: Path) -> Iterator[Path]:
    """Links to folders are not followed, hidden ones are left out; a Zarr store is one."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        path = Path(entry.path)
        if entry.name.startswith("."):
            continue
        if not entry.is_dir(follow_symlinks=False) or any((path / name).is_file() for name in ZARR):
            yield path
        else:
            yield from _walk(path)
