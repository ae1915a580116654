"""The mount table of a process, as /proc/<pid>/mountinfo tells it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.probes.kernel_files import read


@dataclass(frozen=True, slots=True)
class Mount:
    device: str  # major:minor, what st_dev says
    root: str  # which folder of the file system is mounted here
    point: str
    kind: str
    writable: bool
    options: frozenset[str]


def mounts_of(proc: str, pid: int) -> list[Mount]:
    """What is mounted where; of several at one point only the last, which hides the others."""
    table: dict[str, Mount] = {}
    for line in read(f"{proc}/{pid}/mountinfo").decode("utf-8", "surrogateescape").splitlines():
        mount = _parse(line)
        if mount is not None:
            table.pop(mount.point, None)
            table[mount.point] = mount
    return list(table.values())


def holding(path: str, mounts: Iterable[Mount]) -> Mount | None:
    """The mount that `path` lies on: the longest mount point it starts with. Asks no file system."""
    best: Mount | None = None
    for mount in mounts:
        inside = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if inside and (best is None or len(mount.point) > len(best.point)):
            best = mount
    return best


def _parse(line: str) -> Mount | None:
    left, dash, right = line.partition(" - ")
    fields, tail = left.split(" "), right.split(" ")
    if not dash or len(fields) < 6 or len(tail) < 3:
        return None
    own, of_the_file_system = fields[5].split(","), tail[2].split(",")
    return Mount(
        device=fields[2],
        root=_unescape(fields[3]),
        point=_unescape(fields[4]),
        kind=tail[0],
        writable="rw" in own and "ro" not in of_the_file_system,
        options=frozenset(of_the_file_system),
    )


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
