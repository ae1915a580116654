"""Finds the control groups of a process: version 1, version 2, both at once, on the host or in a container."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from holdfast.inside.headroom import GROUP_FILES
from holdfast.probes.kernel_files import read, under
from holdfast.probes.mounts import Mount, mounts_of

# A file that only groups with this controller have, by version.
MARKS = {("memory", version): files.usage for version, files in GROUP_FILES.items()}


@dataclass(frozen=True, slots=True)
class Hierarchy:
    """A group and its ancestors, as folders, the group itself first."""

    version: int
    path: str  # as /proc/<pid>/cgroup names it
    folders: tuple[str, ...]


def membership(root: Path, pid: int) -> bytes:
    return read(under(root, f"/proc/{pid}/cgroup"))


def hierarchy_of(controller: str, belonging: bytes, root: Path, pid: int, mark: str = "") -> Hierarchy | None:
    """A controller is in one hierarchy only, and version 2 does not list its controllers: so version 1 is tried first."""
    mounts = mounts_of(under(root, "/proc"), pid)
    for line in belonging.decode("utf-8", "surrogateescape").splitlines():
        _, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if controller in controllers.split(","):
            version, places = 1, [m for m in mounts if m.kind == "cgroup" and controller in m.options]
        elif line.startswith("0::"):
            version, places = 2, [m for m in mounts if m.kind == "cgroup2"]
        else:
            continue
        wanted = mark or MARKS.get((controller, version), f"{controller}.current")
        folders = _folders(path, places, root, wanted)
        if folders:
            return Hierarchy(version, path, folders)
    return None


def _folders(path: str, places: list[Mount], root: Path, mark: str) -> tuple[str, ...]:
    for mount in places:
        top = under(root, mount.point)
        folder = _folder(path, mount, top)
        found = [level for level in _upwards(folder, top) if os.path.exists(f"{level}/{mark}")]  # noqa: PTH110
        if found:
            return tuple(found)
    return ()


def _folder(path: str, mount: Mount, top: str) -> str:
    """The folder of group `path` below a mount that may show only a part of the hierarchy.

    In a container the mount's root is often the container's own group, which /proc/<pid>/cgroup may name from the
    host's point of view (`/docker/abc`), from the container's (`/`) or from beside it (`/../abc`).
    """
    if mount.root != "/" and (path == mount.root or path.startswith(mount.root + "/")):
        path = path[len(mount.root) :]
    parts = [part for part in path.split("/") if part not in ("", "..")]
    for dropped in range(len(parts)):
        folder = "/".join([top, *parts[dropped:]])
        if os.path.isdir(folder):  # noqa: PTH112
            return folder
    return top


def _upwards(folder: str, top: str) -> list[str]:
    levels = [folder]
    while folder != top and len(folder) > len(top):
        folder = folder.rpartition("/")[0]
        levels.append(folder)
    return levels
