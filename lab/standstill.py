"""A program that is to stand still: waits for that, asks `why` while it does, and ends it as a person would."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .case import STALLED, Hang

ASK_EVERY_S = 3.0
QUIET_S = 15.0  # without Holdfast: so long it must have printed nothing and still be there
LATE_S = 20.0  # after the time that is allowed an answer is still waited for, so that lateness is told from silence


class Standstill:
    """`look` is called again and again while the program runs."""

    def __init__(self, hang: Hang, ask: Callable[[], dict[str, Any] | None] | None) -> None:
        """`ask`: what `why` says now; None where there is no Holdfast in front of the program."""
        self._hang = hang
        self._ask = ask
        self._began: float | None = None
        self._asked_at = 0.0
        self._printed = ""
        self.answer: dict[str, Any] | None = None
        self.stalled_after: float | None = None  # seconds from the standstill until `why` said so, with a cause
        self.over = False

    def look(self, pid: int, printed: str, told_at: float | None) -> None:
        """`told_at`: when Holdfast said its last word to the user."""
        now = time.monotonic()
        if self.over:
            return
        if self._began is None:
            self._began = now if self._hang.after_output in printed else None
            return
        if self._ask is None:
            self._look_bare(pid, printed, now)
            return
        late = now > self._began + self._hang.within_s
        if (late or (told_at is not None and told_at > self._began)) and now > self._asked_at + ASK_EVERY_S:
            self.answer, self._asked_at = self._ask(), time.monotonic()
            if self.answer is not None and self.answer["outcome"] == STALLED and self.answer["cause"] is not None:
                self.stalled_after = now - self._began
        if self.stalled_after is not None or now > self._began + self._hang.within_s + LATE_S:
            self._end(pid, signal.SIGTERM)

    def trouble(self) -> str:
        if self._began is None:
            return f"ended before it printed {self._hang.after_output!r}"
        if not self.over:
            return "ended by itself"
        if self._ask is None:
            return ""
        if self.stalled_after is None:
            outcome = self.answer["outcome"] if self.answer is not None else "nothing"
            return f"why said {outcome} while it stood still"
        late = self.stalled_after - self._hang.within_s
        return f"{late:.0f} s too late" if late > 0 else ""

    def _look_bare(self, pid: int, printed: str, now: float) -> None:
        if printed != self._printed:
            self._printed, self._began = printed, now
        elif self._began is not None and now > self._began + QUIET_S:
            self._end(pid, signal.SIGKILL)

    def _end(self, pid: int, number: signal.Signals) -> None:
        self.over = True
        with suppress(ProcessLookupError):
            os.kill(pid, number)
