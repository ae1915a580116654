"""How long work has been stalled for lack of memory: by pressure stall information, or by pages read back from swap."""

from __future__ import annotations

import os
import select
from collections import deque

from holdfast.supervisor.guard.gauges import Gauge, Group, Machine

STALLED_RATIO = 0.25  # share of the time in which all tasks wait: stalled
SPAN_S = 0.4  # over which that is measured
FAULTS_PER_S = 300.0  # counted as stalled in a group that swaps; at 1 ms a page that is a third of the time
FULL_RATIO = 0.9  # of the whole: with less taken, the pressure comes from elsewhere
SWAPPED_PER_S = 8 << 20  # bytes going to swap steadily: the job outgrows the machine
SWAP_SPAN_S = 1.0
TRIGGERS = (b"full 100000 500000", b"some 300000 2000000")  # the second is allowed to plain users


class Stalls:
    def __init__(self, poll: select.poll, path: str = "/proc/pressure/memory") -> None:
        self._machine = _Total(path)
        self._groups: dict[str, _Total | _Faults] = {}
        self._stalled: dict[int, tuple[float, float]] = {}  # gauge -> (seconds stalled, last look)
        self._swapped: dict[int, deque[tuple[float, float]]] = {}
        self._trigger = _trigger(poll, path)

    def look(self, gauge: Gauge, now: float) -> float:
        """Seconds of stall: they add up while it lasts and go away at half that speed."""
        seconds, at = self._stalled.get(id(gauge), (0.0, now))
        if now - at > SPAN_S / 4:
            if self._stalls_now(gauge, now):
                seconds += min(now - at, 1.0)
            else:
                seconds = max(0.0, seconds - (now - at) / 2)
            self._stalled[id(gauge)] = (seconds, now)
        elif id(gauge) not in self._stalled:
            self._stalled[id(gauge)] = (seconds, now)
        return seconds

    def _stalls_now(self, gauge: Gauge, now: float) -> bool:
        if gauge.left <= 0 and self._swapped_per_s(gauge, now) > SWAPPED_PER_S:
            return True
        if gauge.taken < FULL_RATIO * gauge.whole:
            return False  # the machine's pressure includes that of other containers that thrash at their own limit
        if isinstance(gauge, Machine):
            return self._machine.ratio(now) >= STALLED_RATIO
        if not isinstance(gauge, Group):
            return False
        source = self._groups.get(gauge.folder)
        if source is None:
            pressure = f"{gauge.folder}/memory.pressure"
            source = _Total(pressure) if os.path.exists(pressure) else _Faults(gauge)  # noqa: PTH110
            self._groups[gauge.folder] = source
        return source.ratio(now) >= STALLED_RATIO

    def _swapped_per_s(self, gauge: Gauge, now: float) -> float:
        """Averaged over a second, since swap is written in bursts."""
        course = self._swapped.setdefault(id(gauge), deque(maxlen=16))
        course.append((now, gauge.swapped))
        while len(course) > 2 and now - course[1][0] > SWAP_SPAN_S:
            course.popleft()
        at, before = course[0]
        return (gauge.swapped - before) / (now - at) if now - at > SWAP_SPAN_S / 2 else 0.0


class _Total:
    """Share of the time in which all tasks waited, from the running total of the `full` line."""

    def __init__(self, path: str) -> None:
        try:
            self._fd: int | None = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._fd = None
        self._before = (0.0, -1.0)
        self._ratio = 0.0

    def ratio(self, now: float) -> float:
        if self._fd is None:
            return 0.0
        at, total = self._before
        if now - at >= SPAN_S / 4:
            try:
                fresh = _full_total(os.pread(self._fd, 512, 0))
            except OSError:
                return 0.0
            self._ratio = (fresh - total) / 1e6 / (now - at) if total >= 0 and now - at < 5 * SPAN_S else 0.0
            self._before = (now, fresh)
        return self._ratio


class _Faults:
    """For version 1, which has no pressure file for a group: pages read back while some are swapped out."""

    def __init__(self, group: Group) -> None:
        self._group = group
        self._before = (0.0, -1)
        self._ratio = 0.0

    def ratio(self, now: float) -> float:
        at, count = self._before
        if now - at >= SPAN_S / 4:
            fresh = self._group.use.pages_back
            per_s = (fresh - count) / (now - at) if count >= 0 and now - at < 5 * SPAN_S else 0.0
            self._ratio = STALLED_RATIO * per_s / FAULTS_PER_S if self._group.swapped > 0 else 0.0
            self._before = (now, fresh)
        return self._ratio


def _full_total(data: bytes) -> float:
    at = data.find(b"full")
    at = data.find(b"total=", max(at, 0))
    return float(data[at + 6 :].split()[0]) if at >= 0 else 0.0


def _trigger(poll: select.poll, path: str) -> int | None:
    """Wakes the guard when work stalls, where the kernel lets us ask for it."""
    for wanted in TRIGGERS:
        try:
            fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            os.write(fd, wanted)
        except OSError:
            os.close(fd)
            continue
        poll.register(fd, select.POLLPRI)
        return fd
    return None
