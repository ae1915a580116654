"""A folder of images: each is decoded, for a header says little of whether the rest is there. Folders below it are classes."""

from __future__ import annotations

import io
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from PIL import Image, UnidentifiedImageError

from holdfast.data.formats import IMAGES
from holdfast.data.formats.content import content_hash
from holdfast.data.formats.contract import Chunk, Opened, Part, Schema, Trouble
from holdfast.data.formats.yolo import box_troubles, labels_beside

MOST_PIXELS = 1 << 28  # 768 MiB as RGB; a file that says more is no picture to train on
LARGEST_FILE = 1 << 30
TOGETHER = 32
BROKEN = (
    OSError,
    SyntaxError,
    ValueError,
    UnidentifiedImageError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    MemoryError,
)

Image.MAX_IMAGE_PIXELS = None  # looked at here, before anything is decoded: as an error of the file, not as a warning


class Looked:
    """At one image: its mode and size, or why it cannot be used."""

    def __init__(self, content: bytes) -> None:
        self.mode = self.size = self.wrong = ""
        self.width = self.height = 0
        if not content:
            self.wrong = "it is empty"
            return
        try:
            with Image.open(io.BytesIO(content)) as image:
                self.width, self.height = image.size
                if self.width * self.height > MOST_PIXELS:
                    self.wrong = f"it says it has {self.width:,} × {self.height:,} pixels: it is not decoded"
                    return
                image.load()
                self.mode, self.size = image.mode, f"{self.width}×{self.height}"
        except BROKEN as error:
            self.wrong = (
                f"it does not decode: {str(error).splitlines()[0][:120] if str(error) else type(error).__name__}"
            )


class ImageFolder:
    format, member, hashes_rows = "images", "", True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.files = sorted(images_below(path))
        self.bytes = sum(file.stat().st_size for file in self.files)
        self.schema = Schema((), None, len(self.files))

    def parts(self) -> Iterator[Part]:
        for first in range(0, len(self.files), TOGETHER):
            files = self.files[first : first + TOGETHER]
            yield Part(files, sum(file.stat().st_size for file in files))

    def read(self, part: Part) -> Iterator[Chunk]:
        troubles: list[Trouble] = []
        hashes = np.zeros(len(part.key), np.uint64)
        tallies: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for row, file in enumerate(part.key):
            try:
                content = file.read_bytes() if file.stat().st_size <= LARGEST_FILE else b""
            except OSError as error:
                troubles.append(Trouble("unreadable", error.strerror or str(error), (row,), 1, path=str(file)))
                continue
            hashes[row] = content_hash(content) if content else content_hash(str(file).encode())
            looked = Looked(content)
            if looked.wrong:
                troubles.append(Trouble("unreadable", looked.wrong, (row,), 1, path=str(file)))
            else:
                tallies["mode"][looked.mode] += 1
                tallies["size"][looked.size] += 1
            if file.parent != self.path:
                tallies["class"][str(file.parent.relative_to(self.path))] += 1
            if (boxes := labels_beside(file)) is not None:
                troubles += box_troubles(boxes, row)
                tallies.pop("class", None)
        yield Chunk(len(part.key), (), None, tuple(troubles), hashes, dict(tallies))

    def close(self) -> None:
        pass


def images_below(folder: Path) -> Iterator[Path]:
    for path in folder.rglob("*"):
        if path.suffix.lower() in IMAGES and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            yield path


def open_tables(path: Path) -> Opened:
    return Opened(tables=[ImageFolder(path)])
