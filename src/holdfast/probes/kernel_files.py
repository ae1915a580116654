"""Reads the kernel's small text files, below a root that a test can replace."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from holdfast.vocabulary import Sample

INITIAL_PID_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO of the kernel's proc_ns.h


def under(root: Path, path: str) -> str:
    """`path` (absolute) as seen below `root`."""
    return str(root).rstrip("/") + path


def read(path: str) -> bytes:
    """The whole file. The kernel returns longer ones a page at a time, so it is read until nothing more comes."""
    fd = os.open(path, os.O_RDONLY)
    try:
        pieces = []
        while piece := os.read(fd, 65536):
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
    finally:
        os.close(fd)


def numbers(data: bytes) -> dict[str, int]:
    """`key value` and `key: value kB` lines; kB become bytes."""
    found = {}
    for line in data.splitlines():
        words = line.split()
        if len(words) < 2 or not words[1].isdigit():
            continue
        scale = 1024 if len(words) > 2 and words[2] == b"kB" else 1
        found[words[0].rstrip(b":").decode("ascii", "replace")] = int(words[1]) * scale
    return found


def pid_namespace(root: Path, pid: int | str = "self") -> str:
    """`initial` where process ids are the kernel's own; a container has a namespace with others."""
    try:
        name = os.readlink(under(root, f"/proc/{pid}/ns/pid"))  # noqa: PTH115
    except OSError:
        return "unknown"
    return "initial" if name == INITIAL_PID_NAMESPACE else name


def why(error: OSError, what: str = "") -> str:
    """One line that says why something could not be read."""
    reason = error.strerror or type(error).__name__
    subject = what or str(error.filename or "")
    return f"{subject}: {reason}" if subject else reason


def missing(names: Iterable[str], now: float, reason: str) -> list[Sample]:
    return [Sample(name, None, now, reason) for name in names]
