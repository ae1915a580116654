"""A folder of images: each is decoded where it is asked for, to three colours of one size. Folders in it are classes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.data.stream.npy_files import CHUNK_BYTES
from holdfast.data.stream.source import Arrays, CannotStream, Column, rows_in_chunks

IMAGE, CLASS = "image", "label"
COLOURS = 3
MOST_THREADS = 8  # Pillow decodes without Python's lock


class ImageRows:
    """`size`: height and width to which images are brought; by default all must have the first one's."""

    def __init__(self, folder: Path, columns: Sequence[str] | None, size: tuple[int, int] | None) -> None:
        try:
            from holdfast.data.formats.images import images_below  # noqa: PLC0415 - needs Pillow
        except ImportError:
            raise CannotStream(f"{folder} has images, which are read with Pillow: pip install pillow") from None
        self._folder, self._files, self._resized = folder, sorted(images_below(folder)), size
        self.classes = sorted({str(file.parent.relative_to(folder)) for file in self._files})
        numbers = {name: number for number, name in enumerate(self.classes)}
        self._labels = np.array([numbers[str(file.parent.relative_to(folder))] for file in self._files], np.int64)
        self._size = size or self._decoded(self._files[0]).shape[:2]
        found = [Column(IMAGE, (*self._size, COLOURS), np.dtype(np.uint8))]
        if len(self.classes) > 1:
            found.append(Column(CLASS, (), np.dtype(np.int64)))
        self.columns = tuple(column for column in found if columns is None or column.name in columns)
        self._each = max(1, CHUNK_BYTES // found[0].row_bytes)
        self.chunk_rows: Sequence[int] | np.ndarray[Any, Any] = rows_in_chunks(len(self._files), self._each)

    def likeness(self) -> str:
        names = " ".join(str(file.relative_to(self._folder)) for file in self._files)
        return f"{names} {self._size}"

    def reader(self) -> ImageRows:
        return self

    def fill(self, chunk: int, begin: int, out: Arrays) -> None:
        first = chunk * self._each + begin
        if CLASS in out:
            out[CLASS][...] = self._labels[first : first + len(out[CLASS])]
        if IMAGE in out:
            rows = out[IMAGE]
            files = self._files[first : first + len(rows)]
            with ThreadPoolExecutor(min(MOST_THREADS, len(os.sched_getaffinity(0)))) as pool:
                for number, image in enumerate(pool.map(self._of_the_size, files)):
                    rows[number] = image

    def _of_the_size(self, file: Path) -> np.ndarray[Any, Any]:
        image = self._decoded(file)
        if image.shape[:2] != tuple(self._size):
            height, width = image.shape[:2]
            told = f"{self._files[0].name} has {self._size[0]} × {self._size[1]}"
            raise CannotStream(
                f"{file} has {height} × {width} pixels, {told}: give image_size=(height, width) to bring all to one"
            )
        return image

    def _decoded(self, file: Path) -> np.ndarray[Any, Any]:
        from PIL import Image  # noqa: PLC0415

        from holdfast.data.formats.images import BROKEN, MOST_PIXELS  # noqa: PLC0415

        try:
            with Image.open(file) as image:
                if image.width * image.height > MOST_PIXELS:
                    raise ValueError(f"it says it has {image.width:,} × {image.height:,} pixels")
                coloured = image.convert("RGB")
                if self._resized is not None:
                    coloured = coloured.resize((self._resized[1], self._resized[0]), Image.Resampling.BILINEAR)
                return np.asarray(coloured)
        except BROKEN as error:
            reason = str(error).splitlines()[0][:120] if str(error) else type(error).__name__
            raise CannotStream(f"{file} does not decode: {reason}; `holdfast audit --fix` leaves such out") from None
