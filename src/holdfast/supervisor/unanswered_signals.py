"""A signal that the training process takes in Python does nothing while native code hangs; without Holdfast it would end it.

The part inside saves before it lets such a signal do what it does (`inside/preemption.py`). Its handler runs between two
steps of the interpreter, so never while the main thread sits in a native call. It tells which signals it has taken from
their default effect, and when it has heard one. One that is not heard in time, or not followed by the end, is overdue.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterable
from pathlib import Path

from holdfast.inside.preemption import PATIENCE_S, WIRE
from holdfast.vocabulary import Event

# From the moment it is heard: as long as the handler waits for a step to end, and as long again for that to be heard.
UNTIL_THE_END_S = 2 * PATIENCE_S + 5.0


class UnansweredSignals:
    """Signals of one script, by signal number."""

    def __init__(self, script_pid: int, channel: Path | None) -> None:
        self._pid = script_pid
        self._wire = None if channel is None else channel / f"{script_pid}{WIRE}"
        self._fd: int | None = None
        self._taken: set[int] = set()
        self._due: dict[int, float] = {}

    def given(self, number: int) -> None:
        """The script has received this signal, from us or from a scheduler that signals every process."""
        if number in self._taken:
            self._due.setdefault(number, time.monotonic() + PATIENCE_S)

    def look(self, events: Iterable[Event]) -> None:
        for number in self._on_the_wire():
            self.given(number)
        for event in events:
            if event.data.get("pid") != self._pid:
                continue
            if event.kind == "signals.taken":
                self._taken = {int(number) for number in event.data.get("signals") or ()}
                self._due = {number: at for number, at in self._due.items() if number in self._taken}
            elif event.kind == "signal.heard" and event.data.get("signal") in self._taken:
                self._due[int(event.data["signal"])] = time.monotonic() + UNTIL_THE_END_S

    def overdue(self) -> int | None:
        """The signal that should have ended the script by now. A stopped process is not counted: it would not react anyway."""
        now = time.monotonic()
        late = [number for number, at in self._due.items() if at <= now]
        return late[0] if late and not _is_stopped(self._pid) else None

    def close(self) -> None:
        if self._fd is not None:
            os.close(self._fd)
            self._fd = None
        if self._wire is not None:
            with contextlib.suppress(OSError):
                self._wire.unlink()

    def _on_the_wire(self) -> bytes:
        """Numbers of the signals that reached it, written by the C part of Python's handler: also those sent to its pid."""
        if self._wire is None or not self._taken:
            return b""
        with contextlib.suppress(OSError):
            if self._fd is None:
                self._fd = os.open(self._wire, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            return os.read(self._fd, 4096)
        return b""


def _is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except OSError:
        return False
