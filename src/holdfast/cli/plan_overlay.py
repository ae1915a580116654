"""What a script writes below its directory, kept apart: a mount of the kernel's in a namespace of the script's own.

As root, or where users may make namespaces. The files stay as they are for everybody else, and go with the process.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

NEW_MOUNTS, NEW_USER = 0x00020000, 0x10000000
RECURSIVE, PRIVATE = 1 << 14, 1 << 18
MADE = "overlaid"


def overlaying(cwd: Path, folder: Path) -> Callable[[], None]:
    """To be called in the child before it becomes the script; it leaves a file `MADE` where that went well."""
    upper, work = folder / "upper", folder / "work"
    for path in (upper, work):
        path.mkdir(mode=0o755)
    libc = ctypes.CDLL(None, use_errno=True)
    uid, gid, place = os.getuid(), os.getgid(), os.fsencode(cwd)
    options = f"lowerdir={cwd},upperdir={upper},workdir={work}" + ("" if uid == 0 else ",userxattr")
    possible = not any(character in str(cwd) for character in ":,\\")

    def mount() -> None:
        if not possible or libc.unshare(NEW_MOUNTS | (0 if uid == 0 else NEW_USER)):
            return
        if uid:
            _write("/proc/self/setgroups", "deny")
            _write("/proc/self/uid_map", f"{uid} {uid} 1")
            _write("/proc/self/gid_map", f"{gid} {gid} 1")
        if libc.mount(b"none", b"/", None, RECURSIVE | PRIVATE, None):
            return
        if libc.mount(b"overlay", place, b"overlay", 0, options.encode()) == 0:
            os.chdir(cwd)
            _write(str(folder / MADE), "")

    return mount


def was_made(folder: Path) -> bool:
    return (folder / MADE).exists()


def _write(path: str, text: str) -> None:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError:
        return
