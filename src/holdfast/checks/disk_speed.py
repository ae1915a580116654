"""How fast a file is written, synced and read again where runs are kept."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator

from holdfast.checks.contract import Here, Line, ok, warn
from holdfast.checks.disks import places
from holdfast.probes.kernel_files import under

MIB = 1 << 20
PIECE_BYTES = 4 * MIB
WRITE_S, READ_S = 0.4, 0.2
AT_MOST_BYTES = 256 * MIB
SLOW_WRITE, SLOW_READ = 10 * MIB, 20 * MIB  # a second: a checkpoint of 1 GiB takes two minutes
ELSEWHERE = "keep runs and data on a local disk: holdfast run --dir /local/disk …, and copy the data there first"


def look(here: Here) -> Iterator[Line]:
    folder = places(here)["runs"]
    here.asked(f"the disk of {folder}")
    try:
        # Has no name from the start, so that nothing is left behind, however this ends.
        with tempfile.TemporaryFile(dir=under(here.root, str(folder)), buffering=0) as file:
            written, write_rate = _write(file.fileno())
            read_rate = _read(file.fileno(), written)
    except OSError:
        return  # full, or read-only: the check of space says so
    text = f"writes {write_rate / MIB:.0f} MiB/s, synced, and reads {read_rate / MIB:.0f} MiB/s at {folder}"
    if write_rate < SLOW_WRITE or read_rate < SLOW_READ:
        yield warn("disk-speed", text, ELSEWHERE)
    else:
        yield ok("disk-speed", text)


def _write(fd: int) -> tuple[int, float]:
    piece, written = os.urandom(PIECE_BYTES), 0
    began = time.monotonic()
    while written < AT_MOST_BYTES and time.monotonic() - began < WRITE_S:
        written += os.write(fd, piece)
        os.fsync(fd)
    return written, written / (time.monotonic() - began)


def _read(fd: int, written: int) -> float:
    os.posix_fadvise(fd, 0, written, os.POSIX_FADV_DONTNEED)  # from the disk, not from memory, where it lets go
    os.lseek(fd, 0, os.SEEK_SET)
    began, done = time.monotonic(), 0
    while time.monotonic() - began < READ_S and (piece := os.read(fd, PIECE_BYTES)):
        done += len(piece)
    return done / max(1e-6, time.monotonic() - began)
