"""Takes stacks in a thread, since a file system that hangs may keep whoever reads the script's lines; and saves them in the run."""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.stack_snapshots import TreeSnapshot
from holdfast.supervisor import tree_stacks

LINES_S = 1.0  # how long the script's lines are waited for; then the stacks go without them
MOST_SAVED = 100  # files a run
FOLDER = "stacks"
NOT_OF_THE_JOB = ("hf-guard",)


class StackTaking:
    def __init__(self, directory: Path | None, pids: Callable[[], list[int]]) -> None:
        self._folder = directory / FOLDER if directory is not None else None
        self._pids = pids
        self._thread: threading.Thread | None = None
        self._bare: TreeSnapshot | None = None
        self._whole: TreeSnapshot | None = None
        self._bare_since = 0.0
        self._saved = 0

    @property
    def under_way(self) -> bool:
        return self._thread is not None

    def begin(self) -> bool:
        """False while an earlier one has not come back."""
        if self._thread is not None and self._thread.is_alive():
            return False
        self._bare = self._whole = None
        self._thread = threading.Thread(target=self._take, name="stacks", daemon=True)
        self._thread.start()
        return True

    def result(self) -> TreeSnapshot | None:
        """Once, when it is there."""
        late = self._bare is not None and time.monotonic() - self._bare_since > LINES_S
        snapshot = self._whole or (self._bare if late else None)
        if snapshot is not None:
            self._bare = self._whole = None
            if self._thread is not None and not self._thread.is_alive():
                self._thread = None
        return snapshot

    def _take(self) -> None:
        snapshot = tree_stacks.take(self._pids())
        self._bare_since, self._bare = time.monotonic(), snapshot
        self._whole = whole = tree_stacks.with_code(snapshot)
        self._save(whole)

    def _save(self, snapshot: TreeSnapshot) -> None:
        if self._folder is None or self._saved >= MOST_SAVED:
            return
        self._saved += 1
        with contextlib.suppress(OSError):
            self._folder.mkdir(mode=0o700, exist_ok=True)
            name = time.strftime("%H%M%S", time.localtime(snapshot.at))
            (self._folder / f"{self._saved:03}-{name}.json").write_text(json.dumps(snapshot.as_data()))


def job_processes(script_pid: int) -> list[int]:
    """All that is below the watcher, or below the relay where the watcher was killed; of a script that runs beside us, its own."""
    below = tree_stacks.below(os.getpid())
    if script_pid not in below:
        below = [*below, script_pid, *tree_stacks.below(script_pid)]
    return [pid for pid in below if _name(pid) not in NOT_OF_THE_JOB]


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""
