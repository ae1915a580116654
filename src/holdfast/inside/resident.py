"""What this process keeps in memory, read at a step's boundary: level and step belong together exactly.

Not all that becomes resident is kept. Pages of a file that is mapped can be dropped at any time; and an array of zeros that
was made before the first step (a replay buffer) becomes resident as it is written to, and stops at its size. So a rise
counts as far as new memory was asked for, and files do not count.
"""

from __future__ import annotations

import os
import time
from typing import Optional

from .telemetry import Recorder

AT_FIRST_S, AT_FIRST_FOR_S = 0.02, 3.0  # a leak of gigabytes a second is over by then
OFTEN_S, OFTEN_FOR_S = 0.1, 120.0  # most leaks show in the first minutes…
SELDOM_S = 1.0  # …and a slow one has time
MAPPED_BYTES = 8 << 20  # more of it shared than when last looked up: are those files, or memory shared with workers?


class Resident:
    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._page = os.sysconf("SC_PAGE_SIZE")
        self._open()
        self._began: Optional[float] = None
        self._due = 0.0

    def _open(self) -> None:
        self._pid = os.getpid()
        self._statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        self._shared = self._files = 0
        self._first: Optional[tuple[int, int]] = None

    def look(self, moment: float) -> None:
        """3 µs; called at most ten times a second, at first fifty times."""
        if moment < self._due:
            return
        if self._began is None:
            self._began = moment
        if self._pid != os.getpid():
            self._open()  # the one that was open here is still the parent's
        age_s = moment - self._began
        self._due = moment + (AT_FIRST_S if age_s < AT_FIRST_FOR_S else OFTEN_S if age_s < OFTEN_FOR_S else SELDOM_S)
        fields = os.pread(self._statm, 128, 0).split()
        resident, shared, asked_for = (int(fields[i]) * self._page for i in (1, 2, 5))
        if abs(shared - self._shared) > MAPPED_BYTES:
            self._shared, self._files = shared, _file_pages(shared)
        held = resident - self._files
        if self._first is None:
            self._first = (held, asked_for)
        kept = min(held, self._first[0] + asked_for - self._first[1])
        now, steps = time.time(), self._recorder.steps
        self._recorder.writer.value(now, steps, "rss_bytes", float(kept))
        self._recorder.writer.value(now, steps, "not_kept_bytes", float(resident - kept))


def _file_pages(shared: int) -> int:
    """60 µs; only when a mapping has grown by megabytes."""
    try:
        with open("/proc/self/status", "rb") as status:
            for line in status:
                if line.startswith(b"RssFile:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return shared
