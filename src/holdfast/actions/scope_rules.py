"""Where a scope may be asked for: only out of a scope (a terminal, a login) that limits nothing.

What stands in a service, a container or a scheduler's group stays there, and so does what was limited on purpose.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

USER_SLICE = re.compile(r"/(user-(\d+)\.slice)/")
LIMITS = ("memory.max", "memory.high", "memory.swap.max", "cpu.max", "cpuset.cpus", "io.max")
NO_LIMIT = ("", "max", "max 100000")


def why_not(folder: str, uid: int, run: Path = Path("/run")) -> str:
    """`folder` is the group we are in. Empty where a scope may be asked for."""
    slices = USER_SLICE.search(folder)
    if not (run / "systemd" / "system").is_dir():
        return "no systemd runs here"
    if not folder.endswith(".scope"):
        return "the group is not a terminal's or a login's own"
    if slices is None or uid not in (0, int(slices[2])):
        return "the group is not in a slice of the user's"
    level = folder
    while not level.endswith(slices[1]):
        for limit in LIMITS:
            if _read(f"{level}/{limit}") not in NO_LIMIT:
                return f"the group has a limit of its own: {limit} in {os.path.basename(level)}"  # noqa: PTH119
        level = os.path.dirname(level)  # noqa: PTH120
    return "" if os.access(socket_of(uid, run), os.W_OK) else "no systemd manager can be asked"


def socket_of(uid: int, run: Path) -> str:
    return str((run if uid == 0 else run / "user" / str(uid)) / "systemd" / "private")


def _read(path: str) -> str:
    try:
        return Path(path).read_text().strip()
    except OSError:
        return ""
