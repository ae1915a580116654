"""Which files a process reads: those it has open for reading only, the largest first, with the file system they lie on."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from holdfast.inside.library_paths import is_library
from holdfast.probes.mounts import holding, mounts_of

OF_THE_SYSTEM = ("/proc/", "/sys/", "/dev/")


def files_read(proc: Path, pid: int, most: int, least_bytes: int = 0) -> list[dict[str, object]]:
    found = []
    with contextlib.suppress(OSError):
        for number in os.listdir(proc / str(pid) / "fd"):  # noqa: PTH208 - a stranger's table, changing
            with contextlib.suppress(OSError, ValueError, IndexError):
                path = os.readlink(proc / str(pid) / "fd" / number)  # noqa: PTH115
                flags = (proc / str(pid) / "fdinfo" / number).read_text().split("flags:")[1].split()[0]
                ours = path.startswith("/") and not path.startswith(OF_THE_SYSTEM) and not is_library(path)
                if ours and not int(flags, 8) & 3:
                    found.append((os.stat(path).st_size, path))
    largest = [one for one in sorted(found, reverse=True)[:most] if one[0] >= least_bytes]
    return [{"path": path, "bytes": size} for size, path in largest]


def file_system_of(proc: Path, pid: int, path: str) -> str:
    """Its kind and where it is mounted, as in `nfs4 at /data`; empty where that cannot be told."""
    try:
        mount = holding(path, mounts_of(str(proc), pid))
    except OSError:
        return ""
    return f"{mount.kind} at {mount.point}" if mount is not None else ""
