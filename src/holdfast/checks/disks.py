"""Space, inodes and the right to write where runs are kept, where the script runs, and where temporary files go."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.checks.contract import Here, Line, bad, ok, warn
from holdfast.probes.disk import Room, room_at
from holdfast.probes.kernel_files import under, why
from holdfast.units import amount

GIB = 1 << 30
TOO_LITTLE_BYTES, LITTLE_BYTES = GIB, 5 * GIB
TOO_FEW_INODES_RATIO = 0.01
SMALL_BYTES = 4 * GIB  # a file system of this size that is half empty is a small one, not a full one

MAKE_ROOM = "delete what is not needed (`du -xh DIR | sort -h | tail` names the largest), or use another disk"


def places(here: Here) -> dict[str, Path]:
    """What lies there, and the folder, or the nearest above it that exists."""
    temporary = Path(here.environment.get("TMPDIR") or "/tmp")
    named = {"runs": here.runs, "the working directory": here.cwd, "temporary files": temporary}
    found = {}
    for what, folder in named.items():
        here.asked(str(folder))
        found[what] = _nearest(here, folder)
    return found


def look(here: Here) -> Iterator[Line]:
    rooms: dict[int, tuple[Path, Room, list[str]]] = {}
    read_only: dict[str, Path] = {}
    for what, folder in places(here).items():
        here.asked(f"the file system of {folder} ({what})")
        path = under(here.root, str(folder))
        try:
            device = os.stat(path).st_dev
            rooms.setdefault(device, (folder, room_at(path), []))[2].append(what)
        except OSError as error:
            yield bad("disk-space", f"{what}: {why(error, str(folder))}", "mount it again, or use another folder")
            continue
        if not os.access(path, os.W_OK):
            read_only[what] = folder
    for folder, room, whats in rooms.values():
        about = f"{folder} ({', '.join(whats)})"
        yield space(about, room)
        yield from inodes(about, room)
    yield from _not_writable(read_only)


def space(about: str, room: Room) -> Line:
    text = f"{amount(room.free_bytes, 'bytes')} free of {amount(room.total_bytes, 'bytes')} at {about}"
    if room.free_bytes >= LITTLE_BYTES:
        return ok("disk-space", text)
    is_small = room.total_bytes < SMALL_BYTES and 2 * room.free_bytes >= room.total_bytes
    if room.free_bytes >= TOO_LITTLE_BYTES or is_small:
        return warn("disk-space", text, MAKE_ROOM)
    return bad("disk-space", f"{text}: the next checkpoint may not fit", MAKE_ROOM)


def inodes(about: str, room: Room) -> Iterator[Line]:
    if room.free_inodes is None or not room.total_inodes:
        return
    if room.free_inodes < TOO_FEW_INODES_RATIO * room.total_inodes:
        text = f"{room.free_inodes} of {room.total_inodes} inodes free at {about}: no file can be made without one"
        yield bad("disk-inodes", text, "delete small files: `du --inodes -x DIR | sort -n | tail` names where they are")


def _not_writable(read_only: dict[str, Path]) -> Iterator[Line]:
    for what, folder in read_only.items():
        text = f"{folder} ({what}) cannot be written"
        if len(read_only) == 3:
            yield bad("disk-writable", text, "nothing can be kept here: run it in a folder of yours, or set TMPDIR")
        elif what == "temporary files":
            yield warn("disk-writable", text, "export TMPDIR=DIR with one that can")
        else:
            yield warn("disk-writable", text, "holdfast run --dir DIR keeps runs elsewhere")


def _nearest(here: Here, folder: Path) -> Path:
    while folder != folder.parent and not os.path.isdir(under(here.root, str(folder))):  # noqa: PTH112
        folder = folder.parent
    return folder
