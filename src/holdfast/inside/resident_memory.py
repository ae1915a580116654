"""What this process holds and keeps in memory, read at a step's boundary: level and step belong together exactly.
What counts as held is defined in `held_memory`; statm is read for it here, at a tenth of the cost.

Not all that becomes resident is new. Pages of a file that is mapped can be dropped at any time: they are not counted. And an
array of zeros (a replay buffer) is asked for at once, becomes resident as it is written to, and stops at its size: of a
rise only that is kept for which memory was asked meanwhile.
"""

from __future__ import annotations

import os
import time
from typing import Optional

from .held_memory import file_bytes, status_of_this_process
from .telemetry import AT_FIRST_FOR_S, AT_FIRST_S, Recorder

OFTEN_S, OFTEN_FOR_S = 0.1, 120.0  # most leaks show in the first minutes…
SELDOM_S = 1.0  # …and a slow one has time
MAPPED_BYTES = 8 << 20  # more of it shared than when last looked up: are those files, or memory shared with workers?
AHEAD_BYTES = 16 << 20  # an allocator asks for a little more than is used; what is beyond that was set aside


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
        self._before: Optional[tuple[int, int]] = None
        self._kept = self._ahead = self._given_back = 0

    def look(self, moment: float) -> None:
        """4 µs; called at most ten times a second, at first fifty times."""
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
        self._keep(held, asked_for)
        now, steps, write = time.time(), self._recorder.steps, self._recorder.writer.value
        write(now, steps, "rss_bytes", float(held))
        write(now, steps, "kept_bytes", float(self._kept))
        write(now, steps, "not_kept_bytes", float(resident - self._kept))

    def _keep(self, held: int, asked_for: int) -> None:
        """What fell may rise again without being asked for anew; what was asked for long ago may not."""
        if self._before is None:
            self._before, self._kept = (held, asked_for), held
            return
        more_held, more_asked = held - self._before[0], asked_for - self._before[1]
        self._before = (held, asked_for)
        counted = min(more_held, self._ahead + max(0, more_asked)) if more_held > 0 else more_held
        self._kept += counted
        if more_held < 0:
            self._given_back += max(0, more_asked - more_held)
        self._ahead = min(max(0, self._ahead + more_asked - counted), AHEAD_BYTES + self._given_back)
        self._given_back = min(self._given_back, self._ahead)


def _file_pages(shared: int) -> int:
    """30 µs; only when a mapping has grown by megabytes."""
    found = file_bytes(status_of_this_process())
    return shared if found is None else found
