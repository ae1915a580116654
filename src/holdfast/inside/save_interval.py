"""When to save next: often while little has been done, seldom enough that saving costs next to nothing."""

from __future__ import annotations

from typing import Optional

SOON_S = 2.0  # after the first step; and never more often than this
LATEST_S = 300.0  # what a kill may cost at most, by default
SHARE_OF_AGE = 0.02  # a run of ten minutes may lose twelve seconds
PAUSES = 120.0  # so many pauses long: under 1 % of the time is spent in them
WRITES = 4.0  # the disk and the writing thread are free for most of the time
FADES_TO = 0.7


class Pace:
    def __init__(self, interval_s: Optional[float]) -> None:
        self._fixed_s = interval_s
        self._began: Optional[float] = None
        self._pause_s = 0.0
        self._write_s = 0.0

    def began(self, moment: float) -> float:
        """Training is under way: when the first save is due."""
        if self._began is None:
            self._began = moment
        return moment + (self._fixed_s if self._fixed_s is not None else SOON_S)

    def saved(self, moment: float, pause_s: float, write_s: float) -> float:
        """The worst seen fades each time, so that one slow save does not set the pace for good."""
        self._pause_s = max(pause_s, FADES_TO * self._pause_s)
        self._write_s = max(write_s, FADES_TO * self._write_s)
        return moment + self.interval_s(moment)

    def interval_s(self, moment: float) -> float:
        if self._fixed_s is not None:
            return self._fixed_s
        age = moment - self._began if self._began is not None else 0.0
        wanted = max(SOON_S, SHARE_OF_AGE * age, PAUSES * self._pause_s, WRITES * self._write_s)
        return min(LATEST_S, wanted)
