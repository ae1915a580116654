"""Native frames of a process by py-spy, where it is installed (the extra `native`) and the kernel lets it look."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from holdfast.stack_dumps import Frame

PATIENCE_S = 15.0  # symbols of a framework's libraries take seconds to load; the process stands still for part of it
PTRACE_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
NOT_INSTALLED = "no native frames: py-spy is not installed beside Holdfast (pip install 'holdfast[native]')"


class NoNativeFrames(Exception):
    """Why there are none, in one line."""


def find_py_spy() -> str:
    """Beside Holdfast's own Python first."""
    beside = Path(sys.executable).with_name("py-spy")
    found = str(beside) if os.access(beside, os.X_OK) else shutil.which("py-spy")
    if found is None:
        raise NoNativeFrames(NOT_INSTALLED)
    return found


def refused_by_the_kernel(scope_file: Path = PTRACE_SCOPE, user: int | None = None) -> str:
    """Why a process may not look into another one of the same user; empty where it may, or where nobody says."""
    try:
        scope = int(scope_file.read_text())
    except (OSError, ValueError):
        return ""
    if scope == 0 or (scope < 3 and (os.getuid() if user is None else user) == 0):
        return ""
    who = "nobody" if scope == 3 else "only root" if scope == 2 else "only a process's parents and root"
    return f"no native frames: {who} may look into it here (kernel.yama.ptrace_scope is {scope})"


def native_frames(pid: int, py_spy: str) -> dict[int, tuple[Frame, ...]]:
    """Python and native frames of each thread, by its id in the kernel, innermost first."""
    if reason := refused_by_the_kernel():
        raise NoNativeFrames(reason)
    command = [py_spy, "dump", "--native", "--json", "--pid", str(pid)]
    try:
        asked = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
        threads = json.loads(asked.stdout)
    except subprocess.TimeoutExpired:
        raise NoNativeFrames(f"no native frames: py-spy took longer than {PATIENCE_S:.0f} s") from None
    except OSError as error:
        raise NoNativeFrames(f"no native frames: py-spy cannot be started: {error.strerror}") from None
    except ValueError:
        said = (asked.stderr.strip() or "nothing").splitlines()[0]
        raise NoNativeFrames(f"no native frames: py-spy said {said}") from None
    return {int(thread["os_thread_id"]): _frames(thread) for thread in threads if thread.get("os_thread_id")}


def _frames(thread: dict[str, Any]) -> tuple[Frame, ...]:
    return tuple(
        Frame(str(frame["filename"] or frame["module"] or "?"), int(frame["line"] or 0), str(frame["name"]))
        for frame in thread["frames"]
    )
