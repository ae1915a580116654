"""Our own lines among the script's output: each on a line of its own, and never within what is just being drawn.

A progress bar draws its line again and again after a carriage return, and a terminal may hand us half of such a drawing. So a
line waits until the script's cursor stands at the beginning of a line, or until nothing more came for a moment.
"""

from __future__ import annotations

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable

QUIET_S = 0.02  # the second half of a drawing comes within a millisecond; bars draw every 50 or 100 ms
PATIENCE_S = 0.5  # with a script that never stops printing
KEPT_BYTES = 1024  # of the line the script is in
CUT_SEQUENCE = re.compile(rb"(?:\x1b(?:\[[0-9;?]*)?|[\xc0-\xff][\x80-\xbf]{0,2})\Z")
CONTROL_SEQUENCE = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
ERASE_BELOW = "\x1b[J"  # bars that stand below one another: the next one's line is ours now, and it draws itself again


class OwnLines:
    def __init__(self, write: Callable[[int, memoryview], int], on_terminal: bool, same_place: bool) -> None:
        """`same_place`: what the script prints on stdout is seen where our lines are."""
        self._write = write
        self._sinks = (1, 2) if same_place else (2,)
        self._erase = ERASE_BELOW if on_terminal and os.environ.get("TERM", "dumb") != "dumb" else ""
        self._waiting: deque[tuple[float, str]] = deque()  # filled by several threads, emptied by one
        self._line: dict[int, bytes] = {}
        self._passed_on_at = 0.0
        self._lost = False

    def passed_on(self, fd: int, piece: memoryview) -> None:
        """What the script printed has reached the user."""
        if fd not in self._sinks:
            return
        line = bytes(piece[-KEPT_BYTES:])
        before = b"" if b"\n" in line else self._line.get(fd, b"")
        self._line[fd] = (before + line.rpartition(b"\n")[2])[-KEPT_BYTES:]
        self._passed_on_at = time.monotonic()

    def add(self, text: str) -> bool:
        """False where nobody reads them any more."""
        self._waiting.append((time.monotonic(), text))
        return not self._lost

    def wait_s(self) -> float | None:
        """How long until one may be said; None where none waits."""
        if not self._waiting:
            return None
        if not any(self._line.values()):
            return 0.0
        quiet_at, patient_until = self._passed_on_at + QUIET_S, self._waiting[0][0] + PATIENCE_S
        if quiet_at > patient_until and any(CUT_SEQUENCE.search(line) for line in self._line.values()):
            patient_until = quiet_at
        return max(0.0, min(quiet_at, patient_until) - time.monotonic())

    def say(self, newline: str, now: bool = False) -> None:
        while self._waiting and (now or self.wait_s() == 0.0):
            text = self._waiting.popleft()[1]
            start = newline if any(map(_shows_something, self._line.values())) else ""
            erase = "\r" + self._erase if self._erase and any(self._line.values()) else ""
            self._line.clear()
            self._lost = bool(self._write(2, memoryview(f"{start}{erase}{text}{newline}".encode("utf-8", "replace"))))


def same_place(one: int, other: int) -> bool:
    """Two descriptors of one terminal, file or pipe."""
    try:
        return (os.isatty(one) and os.isatty(other)) or os.path.sameopenfile(one, other)
    except OSError:
        return False


def _shows_something(line: bytes) -> bool:
    """A bar that has gone leaves spaces, or a sequence that erases its line."""
    drawn: Iterable[bytes] = (part for part in reversed(line.split(b"\r")) if part)
    return bool(CONTROL_SEQUENCE.sub(b"", next(iter(drawn), b"")).strip(b" "))
