"""A folder of NumPy shards on a file system of its own, which stops answering when it is told to: a mount that hangs.

Spoken is the kernel's FUSE protocol on /dev/fuse, since no library for it is needed for six requests. Readers wait in the kernel
as they do for a file server that has gone. Run as a process: `python -m lab.frozen_files FOLDER`; a line on standard input
freezes it, and with its end the waiting readers get an error.
"""

from __future__ import annotations

import ctypes
import errno
import io
import os
import select
import stat
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from .stage import CannotStage

DEVICE = Path("/dev/fuse")
SHARDS, ROWS, FEATURES = 64, 256, 16
LOOKUP, FORGET, GETATTR, OPEN, READ, STATFS, RELEASE = 1, 2, 3, 14, 15, 17, 18
FLUSH, INIT, OPENDIR, READDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 25, 26, 27, 28, 29, 36, 42
UNANSWERED = (FORGET, BATCH_FORGET, INTERRUPT)
HEADER = struct.Struct("<IIQQIIIHH")
REPLY = struct.Struct("<IiQ")
ATTRIBUTES = struct.Struct("<QQQQQQIIIIIIIIII")
DIRECT_IO = 1
ROOT = 1
READY = "ready"


@contextmanager
def mounted(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The folder is served until the end of the block; whatever waits for it then gets an error."""
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        raise CannotStage(f"{DEVICE} cannot be opened, so there is no file system to freeze")
    folder.mkdir()
    command = [sys.executable, "-m", "lab.frozen_files", str(folder)]
    source = Path(__file__).parent.parent
    with subprocess.Popen(command, cwd=source, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        try:
            if server.stdout.readline().decode().strip() != READY:
                raise CannotStage("no FUSE file system can be mounted here")
            yield server
        finally:
            server.kill()
            server.wait()
            subprocess.run(["umount", "-l", str(folder)], check=False, stderr=subprocess.DEVNULL)


def freeze(server: subprocess.Popen[bytes]) -> None:
    assert server.stdin is not None
    with suppress(BrokenPipeError):
        server.stdin.write(b"freeze\n")
        server.stdin.flush()


class Shards:
    """Answers requests about one flat folder of files that are made when they are read."""

    def __init__(self) -> None:
        self._files = {f"shard-{number:03d}.npy": _shard(number) for number in range(SHARDS)}
        self._names = sorted(self._files)

    def answer(self, kind: int, node: int, body: bytes) -> bytes | int:
        """The reply's body, or an error's number."""
        if kind == INIT:
            major, _, readahead, _ = struct.unpack_from("<IIII", body)
            return struct.pack("<IIIIHHI", major, 31, readahead, 0, 12, 9, 1 << 16).ljust(64, b"\0")
        if kind == LOOKUP:
            return self._looked_up(body.rstrip(b"\0").decode())
        if kind == GETATTR:
            return struct.pack("<QII", 60, 0, 0) + self._attributes(node)
        if kind in (OPEN, OPENDIR):
            return struct.pack("<QII", node, DIRECT_IO if kind == OPEN else 0, 0)
        if kind == READ:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self._content(node)[offset : offset + size]
        if kind == READDIR:
            _, offset, size = struct.unpack_from("<QQI", body)
            return self._listed(offset, size)
        if kind == STATFS:
            return struct.pack("<QQQQQIIII", 0, 0, 0, 0, 0, 4096, 255, 4096, 0).ljust(80, b"\0")
        return b"" if kind in (FLUSH, RELEASE, RELEASEDIR) else errno.ENOSYS

    def _looked_up(self, name: str) -> bytes | int:
        if name not in self._files:
            return errno.ENOENT
        node = self._names.index(name) + ROOT + 1
        return struct.pack("<QQQQII", node, 0, 60, 60, 0, 0) + self._attributes(node)

    def _content(self, node: int) -> bytes:
        return self._files[self._names[node - ROOT - 1]]

    def _attributes(self, node: int) -> bytes:
        mode = stat.S_IFDIR | 0o755 if node == ROOT else stat.S_IFREG | 0o644
        size = 0 if node == ROOT else len(self._content(node))
        return ATTRIBUTES.pack(
            node, size, size // 512 + 1, 0, 0, 0, 0, 0, 0, mode, 1, os.getuid(), os.getgid(), 0, 4096, 0
        )

    def _listed(self, offset: int, size: int) -> bytes:
        found = b""
        for number, name in list(enumerate(self._names))[offset:]:
            packed = name.encode()
            entry = struct.pack("<QQII", number + ROOT + 1, number + 1, len(packed), stat.S_IFREG >> 12) + packed
            entry = entry.ljust((len(entry) + 7) & ~7, b"\0")
            if len(found) + len(entry) > size:
                break
            found += entry
        return found


def _shard(number: int) -> bytes:
    rows = np.random.default_rng(number).normal(size=(ROWS, FEATURES)).astype(np.float32)
    packed = io.BytesIO()
    np.save(packed, rows)
    return packed.getvalue()


def serve(folder: str) -> None:
    device = os.open(DEVICE, os.O_RDWR)
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"fd={device},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()},allow_other"
    if libc.mount(b"shards", folder.encode(), b"fuse", 0, options.encode()):
        sys.exit(os.strerror(ctypes.get_errno()))
    print(READY, flush=True)
    shards = Shards()
    while True:
        ready, _, _ = select.select([device, sys.stdin], [], [])
        if sys.stdin in ready:  # told to freeze: the requests stay where they are
            sys.stdin.readline()
            select.select([], [], [])
        request = os.read(device, 1 << 20)
        _, kind, unique, node, *_ = HEADER.unpack_from(request)
        if kind in UNANSWERED:
            continue
        answer = shards.answer(kind, node, request[HEADER.size :])
        error, body = (-answer, b"") if isinstance(answer, int) else (0, answer)
        os.write(device, REPLY.pack(REPLY.size + len(body), error, unique) + body)


if __name__ == "__main__":
    serve(sys.argv[1])
