"""Which files the script opens for writing while it is planned for, so that they can be named."""

from __future__ import annotations

import os
import sys
from typing import Any, Set

from .notes import Notes

MOST = 50
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
NOT_FILES = ("/dev/", "/proc/", "/sys/")


def follow(notes: Notes) -> None:
    """An audit hook cannot be taken away again: only for processes that end soon."""
    seen: Set[str] = set()

    def hook(event: str, args: Any) -> None:
        if event != "open" or len(seen) >= MOST:
            return
        path, _mode, flags = args
        if not isinstance(path, (str, bytes)) or not isinstance(flags, int) or not flags & WRITES:
            return
        name = os.path.abspath(os.fsdecode(path))
        if name not in seen and not name.startswith(NOT_FILES) and "__pycache__" not in name:
            seen.add(name)
            notes.tell("writes", path=name)

    sys.addaudithook(hook)
