"""Where a ring lies: in memory, with a link to it in the run's directory.

A store into a mapped page of a disk's file may have to wait for that disk (the kernel asks the file system first, once
a page has been written back). In /dev/shm nothing waits. Where there is little room it lies in the run's directory.
"""

from __future__ import annotations

import contextlib
import os
import time
from typing import Iterator

from .ring import Writer

MEMORY = "/dev/shm"
NAME = "holdfast-"
SPARE_BYTES = 16 << 20  # what is left to others in it: containers often have 64 MiB
STALE_S = 3600.0


def new_ring(path: str) -> Writer:
    """A ring that is found at `path`. The name is taken once: a later process with the same pid gets none."""
    if os.path.lexists(path):
        raise FileExistsError(path)
    if _has_room():
        target = os.path.join(MEMORY, f"{NAME}{os.getpid()}-{os.urandom(6).hex()}.ring")
        with contextlib.suppress(OSError):
            writer = Writer(target)
            try:
                os.symlink(target, path)
            except OSError:
                os.unlink(target)
                raise
            return writer
    return Writer(path)


def _has_room() -> bool:
    try:
        room = os.statvfs(MEMORY)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize > SPARE_BYTES


def clear(channel: str) -> None:
    """After a run: takes its rings out of memory, and those whose processes and watchers were all killed long ago."""
    for path in [*_links(channel), *_stale()]:
        with contextlib.suppress(OSError):
            os.unlink(path)


def _links(channel: str) -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in os.listdir(channel):
            path = os.path.join(channel, name)
            with contextlib.suppress(OSError):
                target = os.readlink(path)
                if target.startswith(os.path.join(MEMORY, NAME)):
                    yield target
                    yield path


def _stale() -> Iterator[str]:
    with contextlib.suppress(OSError):
        for name in os.listdir(MEMORY):
            pid = name[len(NAME) :].split("-")[0]
            path = os.path.join(MEMORY, name)
            if (
                name.startswith(NAME)
                and name.endswith(".ring")
                and pid.isdigit()
                and not os.path.exists(f"/proc/{pid}")
            ):
                with contextlib.suppress(OSError):
                    if time.time() - os.stat(path).st_mtime > STALE_S:
                        yield path
