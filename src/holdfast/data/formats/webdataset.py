"""webdataset: tars whose files belong together by name, read as a stream. Nothing is unpacked to disk."""

from __future__ import annotations

import json
import tarfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from holdfast.data.formats import IMAGES
from holdfast.data.formats.content import content_hash
from holdfast.data.formats.contract import PART_BYTES, Chunk, Opened, Part, Schema, Trouble, Unreadable
from holdfast.data.formats.images import Looked

LARGEST_FILE = 256 << 20
Sample = tuple[str, dict[str, bytes]]


class WebdatasetTable:
    format, member, hashes_rows = "webdataset", "", True

    def __init__(self, path: Path) -> None:
        self.path, self.schema, self.bytes = path, Schema((), None, None), path.stat().st_size

    def parts(self) -> Iterator[Part]:
        together: list[Sample] = []
        size = 0
        for sample in self._samples():
            together.append(sample)
            size += sum(map(len, sample[1].values()))
            if size >= PART_BYTES // 2:
                yield Part(together, size)
                together, size = [], 0
        if together:
            yield Part(together, size)

    def _samples(self) -> Iterator[Sample]:
        """Files that follow each other and have the same name up to its first dot."""
        key, files = "", dict[str, bytes]()
        try:
            with tarfile.open(self.path, "r|") as archive:
                for member in archive:
                    if not member.isfile():
                        continue
                    if member.size > LARGEST_FILE:
                        raise Unreadable(f"{member.name[:80]} in it is {member.size:,} bytes long")
                    folder, _, name = member.name.rpartition("/")
                    stem, _, ending = name.partition(".")
                    if (folder + "/" + stem) != key and files:
                        yield key, files
                        files = {}
                    key = folder + "/" + stem
                    stream = archive.extractfile(member)
                    files[ending.lower()] = stream.read() if stream is not None else b""
        except (tarfile.TarError, EOFError, OSError) as error:
            if files:
                yield key, files
            raise Unreadable(f"it is no whole tar: {error}") from None
        if files:
            yield key, files

    def read(self, part: Part) -> Iterator[Chunk]:
        troubles: list[Trouble] = []
        tallies: defaultdict[str, Counter[str]] = defaultdict(Counter)
        hashes = np.zeros(len(part.key), np.uint64)
        for row, (key, files) in enumerate(part.key):
            hashes[row] = content_hash(b"\0".join(content for _, content in sorted(files.items())))
            tallies["files of a sample"][" ".join(sorted(files))] += 1
            for ending, content in files.items():
                wrong = _look(ending, content, tallies)
                if wrong:
                    troubles.append(Trouble("unreadable", f"{key.lstrip('/')}.{ending}: {wrong}", (row,), 1))
        yield Chunk(len(part.key), (), None, tuple(troubles), hashes, dict(tallies))

    def close(self) -> None:
        pass


def _look(ending: str, content: bytes, tallies: dict[str, Counter[str]]) -> str:
    last = "." + ending.rpartition(".")[2]
    if last in IMAGES:
        looked = Looked(content)
        if not looked.wrong:
            tallies["mode"][looked.mode] += 1
            tallies["size"][looked.size] += 1
        return looked.wrong
    if last == ".cls":
        text = content.decode("ascii", "replace").strip()
        tallies["class"][text] += 1
        return "" if text.isdigit() else f'it is no class: "{text[:40]}"'
    if last == ".json":
        try:
            json.loads(content)
        except ValueError as error:
            return f"it is no JSON: {str(error)[:80]}"
    return ""


def open_tables(path: Path) -> Opened:
    return Opened(tables=[WebdatasetTable(path)])
