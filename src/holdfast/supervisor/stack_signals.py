"""Asks one process for the Python stacks of its threads, by the signals of `inside/stacks.py`.

First whoever can run Python in it is asked for all stacks at once: that is safe whatever the threads do. Where nobody answers, nobody
runs Python: the GIL is held by native code, or the main thread is in native code and no helper waits. Then threads that stand
still are asked one by one. While one answers the kernel has the signal blocked for it: so it is known when an answer is whole,
and a thread without Python, which answers nothing, costs no waiting.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import platform
import re
import time
from dataclasses import dataclass, field
from functools import cache
from itertools import dropwhile

from holdfast.inside.stacks import END, HELPER, NAME
from holdfast.stack_dumps import Frame, current_frames, named_stacks
from holdfast.stack_snapshots import RUNS

TGKILL = {"x86_64": 234, "aarch64": 131}
# For all stacks: Python gives up the GIL every 5 ms, and on a busy machine a thread may wait long for its turn.
BY_HELPER_S, BY_MAIN_S = 1.5, 0.7
ONE_THREAD_S = 0.2
SETTLES_S = 0.02  # a thread that does not run for so long stands still
LOOK_EVERY_S = 0.0005
LONGEST_ANSWER = 4 << 20
STANDS = "SI"  # states in which a thread does not run and takes a signal

_FILE = re.compile(rf"{NAME}-(?P<pid>\d+)-(?P<standing>\d+)-(?P<ask>\d+)")


class CannotAsk(Exception):
    """One line that says why there are no stacks."""


@dataclass(slots=True)
class Answers:
    """By thread id. `unplaced`: stacks of threads that C code has made, with the address of each one's control block."""

    frames: dict[int, tuple[Frame, ...]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    missing: dict[int, str] = field(default_factory=dict)
    unplaced: list[tuple[int, tuple[Frame, ...]]] = field(default_factory=list)
    gil_held: bool = False  # by native code, all the time an answer was waited for


class StackSignals:
    """One process. Raises CannotAsk where it has nothing of ours."""

    def __init__(self, pid: int, until: float) -> None:
        self._pid = pid
        self._folder = f"/proc/{pid}"
        self._number, self._standing, self._all = self._find()
        try:
            self._answers = os.open(f"{self._folder}/fd/{self._number}", os.O_RDWR | os.O_CLOEXEC)
        except OSError as error:
            raise CannotAsk(f"its stacks cannot be read: {error.strerror}") from None
        try:
            self._have_it_alone(until)
        except CannotAsk:
            os.close(self._answers)
            raise

    def close(self) -> None:
        with contextlib.suppress(OSError):  # what was read is freed; the writer goes on at its place
            os.ftruncate(self._answers, 0)
        os.close(self._answers)

    def ask(self, tids: list[int], until: float) -> Answers:
        ran_before = {tid: self._ran(tid) for tid in tids}
        helper = next((tid for tid in tids if self._comm(tid) == HELPER), None)
        found = self._all_at_once(helper, until) if helper is not None or self._somebody_runs(tids) else None
        if found is not None:
            return found
        held = helper is not None  # Python waits for the GIL in vain, so no thread runs Python
        answers = Answers(gil_held=held)
        for tid in tids:
            if tid == helper:
                continue
            try:
                if not (held or tid == self._pid or self._stands_still(tid, ran_before[tid])):
                    raise CannotAsk(RUNS)
                if frames := self._ask_one(tid, min(until, time.monotonic() + ONE_THREAD_S)):
                    answers.frames[tid] = frames
            except (CannotAsk, OSError) as error:
                answers.missing[tid] = str(error)
        return answers

    # -- all at once, by whoever can run Python

    def _all_at_once(self, helper: int | None, until: float) -> Answers | None:
        """None where nobody answers."""
        asked, patience_s = (helper, BY_HELPER_S) if helper is not None else (self._pid, BY_MAIN_S)
        if helper is None and not self._listens(self._all):
            return None
        before = self._position()
        _send(self._pid, asked, self._all)
        until = min(until, time.monotonic() + patience_s)
        while True:
            text = self._read(before)
            if text.endswith(f"{END}\n"):
                return _placed(text)
            if time.monotonic() >= until:
                return None
            time.sleep(LOOK_EVERY_S)

    def _somebody_runs(self, tids: list[int]) -> bool:
        """Else the main thread is left alone: the signal would end some of the kernel's calls, and others are still."""
        time.sleep(SETTLES_S)
        return any(self._line(tid, "stat").rpartition(")")[2].split()[:1] == ["R"] for tid in tids)

    # -- one by one, where nobody runs Python

    def _ask_one(self, tid: int, until: float) -> tuple[Frame, ...]:
        if self._busy(tid):
            raise CannotAsk("it has blocked the signal")
        if not self._listens(self._standing):  # looked up right before: to a program in its place it would be the end
            raise CannotAsk("it takes no such signal any more")
        before = self._position()
        _send(self._pid, tid, self._standing)
        while not self._has_answered(tid, before):
            if time.monotonic() >= until:
                if not self._busy(tid):
                    break  # native code that computes, and has no Python to tell of
                raise CannotAsk("it did not answer in time")
            time.sleep(LOOK_EVERY_S)
        return current_frames(self._read(before).splitlines())

    def _has_answered(self, tid: int, before: int) -> bool:
        """Between the signal that waits and the one that is being answered there is a moment in which neither is to be seen."""
        if self._busy(tid):
            return False
        begun = self._position() != before or self._state(tid) != "R"
        return begun and not self._busy(tid)

    def _stands_still(self, tid: int, ran_before: str) -> bool:
        return self._state(tid) in STANDS and ran_before != "" and self._ran(tid) == ran_before

    def _busy(self, tid: int) -> bool:
        """The signal waits for the thread, or is being answered."""
        masks = [
            int(line.split()[1], 16) for line in self._status(f"/task/{tid}") if line.startswith(("SigPnd", "SigBlk"))
        ]
        return any(mask >> (self._standing - 1) & 1 for mask in masks)

    # -- what the kernel says of it

    def _find(self) -> tuple[str, int, int]:
        try:
            numbers = os.listdir(f"{self._folder}/fd")  # noqa: PTH208 - a stranger's table, changing
        except OSError as error:
            raise CannotAsk(f"its descriptors cannot be read: {error.strerror}") from None
        own = self._own_ids()
        for number in numbers:
            with contextlib.suppress(OSError):
                file = _FILE.search(os.readlink(f"{self._folder}/fd/{number}"))  # noqa: PTH115
                if file is not None and int(file["pid"]) in own:
                    return number, int(file["standing"]), int(file["ask"])
        raise CannotAsk("Holdfast is not in it")

    def _own_ids(self) -> set[int]:
        """Its process id in every namespace: in a container it knows itself by another one."""
        ids = next((line for line in self._status("") if line.startswith("NSpid:")), "")
        return {self._pid, *map(int, ids.split()[1:])}

    def _have_it_alone(self, until: float) -> None:
        """Answers do not say who asked, so two who ask at the same time would get each other's."""
        while True:
            try:
                fcntl.flock(self._answers, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= until:
                    raise CannotAsk("somebody else asks it at the same time") from None
                time.sleep(0.01)
            else:
                return

    def _listens(self, number: int) -> bool:
        caught = next((line for line in self._status("") if line.startswith("SigCgt")), "SigCgt: 0")
        return bool(int(caught.split()[1], 16) >> (number - 1) & 1)

    def _position(self) -> int:
        try:
            with open(f"{self._folder}/fdinfo/{self._number}") as info:
                return int(info.readline().split()[1])
        except OSError:
            raise CannotAsk("it has ended") from None

    def _read(self, since: int) -> str:
        length = min(self._position() - since, LONGEST_ANSWER)
        return os.pread(self._answers, length, since).decode("utf-8", "replace") if length > 0 else ""

    def _status(self, below: str) -> list[str]:
        try:
            with open(f"{self._folder}{below}/status") as file:
                return file.read().splitlines()
        except OSError:
            raise CannotAsk("it has ended") from None

    def _state(self, tid: int) -> str:
        return next((line.split()[1] for line in self._status(f"/task/{tid}") if line.startswith("State")), "")

    def _ran(self, tid: int) -> str:
        """How long it was on a processor, in nanoseconds; empty where that cannot be read."""
        return self._line(tid, "schedstat").partition(" ")[0]

    def _comm(self, tid: int) -> str:
        return self._line(tid, "comm")

    def _line(self, tid: int, name: str) -> str:
        try:
            with open(f"{self._folder}/task/{tid}/{name}") as file:
                return file.readline().strip()
        except OSError:
            return ""


def _placed(text: str) -> Answers:
    answers = Answers()
    for tid, ident, name, found in named_stacks(text.splitlines()):
        if found and found[-1].file.endswith("stack_helper.py"):
            continue
        frames = tuple(
            dropwhile(lambda frame: frame.file.endswith(f"inside{os.sep}stacks.py"), found)
        )  # the answer itself
        if tid:
            answers.frames[tid], answers.names[tid] = frames, name
        else:
            answers.unplaced.append((ident, frames))
    return answers


def _send(pid: int, tid: int, number: int) -> None:
    call = TGKILL.get(platform.machine())
    if call is None:
        raise CannotAsk(f"not known how to ask a thread on {platform.machine()}")
    if _libc().syscall(call, pid, tid, number) != 0:
        raise CannotAsk(os.strerror(ctypes.get_errno()))


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
