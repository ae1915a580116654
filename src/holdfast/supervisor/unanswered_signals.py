"""A signal that the training process takes in Python does nothing while native code hangs; without Holdfast it would end it.

The part inside saves before it lets such a signal do what it does (`inside/preemption.py`). Its handler runs between two
steps of the interpreter, so never while the main thread sits in a native call. It tells which signals it has taken from
their default effect, and when it has heard one. One that is not heard in time, or not followed by the end, is overdue.

So is one that would end a process which waits for a file system that hangs, had it not been asked for its stacks: while our signal is
pending there the kernel hands it no other one but SIGKILL.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Iterable
from pathlib import Path

from holdfast.inside import stacks
from holdfast.inside.preemption import PATIENCE_S, WIRE
from holdfast.vocabulary import Event

# From the moment it is heard: as long as the handler waits for a step to end, and as long again for that to be heard.
UNTIL_THE_END_S = 2 * PATIENCE_S + 5.0
HELD_UP_S = 2.0  # a signal that would have ended it at once
ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGXCPU, signal.SIGUSR1, signal.SIGUSR2)


class UnansweredSignals:
    """Signals of one script, by signal number."""

    def __init__(self, script_pid: int, channel: Path | None) -> None:
        self._pid = script_pid
        self._wire = None if channel is None else channel / f"{script_pid}{WIRE}"
        self._fd: int | None = None
        self._taken: set[int] = set()
        self._due: dict[int, float] = {}
        self._held_up: dict[int, float] = {}

    def given(self, number: int) -> None:
        """The script has received this signal, from us or from a scheduler that signals every process."""
        if number in self._taken:
            self._due.setdefault(number, time.monotonic() + PATIENCE_S)

    def look(self, events: Iterable[Event]) -> None:
        for number in self._on_the_wire():
            self.given(number)
        until = time.monotonic() + HELD_UP_S
        self._held_up = {number: self._held_up.get(number, until) for number in held_up(_status(self._pid))}
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
        late = [number for number, at in (*self._due.items(), *self._held_up.items()) if at <= now]
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


def held_up(status: str) -> list[int]:
    """Signals that wait behind one of ours, and whose effect would be to end the process. From its /proc/PID/status."""
    lines = (line.partition(":") for line in status.splitlines())
    masks = {
        name: int(text, 16) for name, _, text in lines if name in ("SigPnd", "ShdPnd", "SigBlk", "SigIgn", "SigCgt")
    }
    if not any(_has(masks.get("SigPnd", 0), ours) for ours in (stacks.STANDING, stacks.ASK)):
        return []
    waiting = masks["SigPnd"] | masks.get("ShdPnd", 0)
    answered = masks.get("SigBlk", 0) | masks.get("SigIgn", 0) | masks.get("SigCgt", 0)
    return [int(number) for number in ENDING if _has(waiting, number) and not _has(answered, number)]


def _has(mask: int, number: int) -> bool:
    return bool(mask >> (number - 1) & 1)


def _status(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return ""


def _is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] in (b"T", b"t")
    except OSError:
        return False
