"""What this process holds in memory, read at a step's boundary: level and step belong together exactly."""

from __future__ import annotations

import os
import time
from typing import Optional

from .telemetry import Recorder

AT_FIRST_S, AT_FIRST_FOR_S = 0.02, 3.0  # a leak of gigabytes a second is over by then
OFTEN_S, OFTEN_FOR_S = 0.1, 120.0  # most leaks show in the first minutes…
SELDOM_S = 1.0  # …and a slow one has time


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

    def look(self, moment: float) -> None:
        """2.3 µs; called at most ten times a second, at first fifty times."""
        if moment < self._due:
            return
        if self._began is None:
            self._began = moment
        if self._pid != os.getpid():
            self._open()  # the one that was open here is still the parent's
        age_s = moment - self._began
        self._due = moment + (AT_FIRST_S if age_s < AT_FIRST_FOR_S else OFTEN_S if age_s < OFTEN_FOR_S else SELDOM_S)
        resident = int(os.pread(self._statm, 128, 0).split()[1]) * self._page
        self._recorder.writer.value(time.time(), self._recorder.steps, "rss_bytes", float(resident))
