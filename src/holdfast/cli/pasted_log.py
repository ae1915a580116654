"""Opens and reads a log that Holdfast did not record: a file, a compressed file or standard input."""

from __future__ import annotations

import gzip
import sys
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from holdfast.cli.errors import UserError
from holdfast.diagnosis.plain_text import lines_of
from holdfast.diagnosis.reading.scan import Excerpt, excerpt
from holdfast.diagnosis.verdict import diagnose_log
from holdfast.views.why_text import Log
from holdfast.vocabulary import Diagnosis

GZIP = b"\x1f\x8b"
LAST_LINES = 6  # shown where no cause was found


@dataclass(frozen=True, slots=True)
class ReadLog:
    about: Log
    diagnosis: Diagnosis


class CutGzip:
    """Reads a compressed log up to where it is cut off or damaged."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = gzip.GzipFile(fileobj=file)

    def read(self, size: int) -> bytes:
        try:
            return self._file.read(size)
        except (EOFError, OSError, zlib.error):
            return b""


def read_file(name: str) -> ReadLog:
    path = Path(name)
    try:
        with open(path, "rb", buffering=0) as file:
            compressed = path.suffix == ".gz" and file.read(2) == GZIP
            if path.suffix == ".gz":
                file.seek(0)
            return _read(name, cast("IO[bytes]", CutGzip(file)) if compressed else cast("IO[bytes]", file))
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror or error}") from None


def read_stdin() -> ReadLog:
    if sys.stdin is None:
        raise UserError("standard input is closed; pipe a log into it, or name a file")
    return _read("-", sys.stdin.buffer)


def _read(name: str, stream: IO[bytes]) -> ReadLog:
    read = excerpt(stream)  # type: ignore[arg-type]
    return ReadLog(Log(name, _size(read), _last_words(read)), diagnose_log(read))


def _size(read: Excerpt) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if read.bytes_read >= size:
            return f"{read.bytes_read / size:.3g} {unit}"
    return f"{read.bytes_read} bytes"


def _last_words(read: Excerpt) -> tuple[str, ...]:
    last = read.pieces[-1].data[-8000:] if read.pieces else b""
    return tuple([line for line in lines_of(last) if line.strip()][-LAST_LINES:])
