"""What all processes of a job hold together: the one definition, for the guard and for the journal."""

from __future__ import annotations

import time
from collections.abc import Collection

from holdfast.inside.held_memory import held_bytes, held_share_bytes
from holdfast.probes.kernel_files import read

SLOW_S = 0.25  # walking the page tables of 100 GiB takes about that, with the process's memory map locked


class JobMemory:
    """Weighed now and then; in between it changes as the sum of the processes' resident sizes does.

    By proportional shares (a page that n processes share counts n times 1/n), since a loader's workers share most of what
    they have with their parent. Where that takes too long or the kernel does not tell, by what each process holds.
    """

    def __init__(self, proc: str = "/proc") -> None:
        self._proc = proc
        self._by_share = True
        self._held: float | None = None
        self._at_rss = 0.0
        self.took_s = 0.0

    def weigh(self, pids: Collection[int], rss_bytes: float) -> bool:
        """False where no process could be read."""
        began = time.monotonic()
        held = [self._held_by(pid, began) for pid in pids]
        known = [size for size in held if size is not None]
        self.took_s = time.monotonic() - began
        if known:
            self._held, self._at_rss = float(sum(known)), rss_bytes
        return bool(known)

    def held_bytes(self, rss_bytes: float) -> float:
        """Before the first weighing, the sum of the resident sizes itself."""
        return rss_bytes if self._held is None else max(0.0, self._held + rss_bytes - self._at_rss)

    def _held_by(self, pid: int, began: float) -> int | None:
        try:
            if self._by_share:
                share = held_share_bytes(read(f"{self._proc}/{pid}/smaps_rollup"))
                self._by_share = time.monotonic() - began < SLOW_S
                if share is not None:
                    return share
        except OSError:  # gone, of another user, or before Linux 4.14
            pass
        try:
            return held_bytes(read(f"{self._proc}/{pid}/status"))
        except OSError:
            return None
