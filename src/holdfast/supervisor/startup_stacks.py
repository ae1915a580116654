"""Before the first step: what the training process does while its memory rises, by its own stack and what it reads.

Once it trains, levels and steps tell more. Asking costs the process some 100 microseconds in a signal's handler. A single
read of a large file answers only once it is over, so the files it has open are looked up as well.
"""

from __future__ import annotations

import contextlib
import linecache
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from itertools import dropwhile
from pathlib import Path

from holdfast.inside.held_memory import held_bytes
from holdfast.inside.library_paths import is_library
from holdfast.inside.stacks import NAME
from holdfast.stack_dumps import Frame, current_frames, named_stacks
from holdfast.supervisor.open_files import files_read
from holdfast.vocabulary import Event, Sample

GROWN_BYTES = 96 << 20  # since the framework was there: below it nothing is worth asking
GROWN_RATIO = 1.12  # since the last answer: so a run asks some dozens of times, however large it gets
GROWING_BYTES = 4 << 20  # between two looks
MOST = 80  # stacks of a run
EAGER_PACE_S = 0.1  # an array is read from the page cache at gigabytes a second
EAGER_FOR_S = 60.0  # after the framework was there; longer only while memory rises
FRAMES = 40  # of a stack, innermost first
FILES, LEAST_FILE_BYTES = 3, 16 << 20
LONGEST_ANSWER = 32 << 10  # bytes of stacks read at a time


@dataclass(slots=True)
class _Process:
    pid: int
    signal: int  # that a thread answers which stands still or is in native code
    path: str
    ask: int = 0  # that Python answers; 0 where it does not
    in_native_code: bool = False  # Python did not answer until the next look
    read_bytes: int = 0
    base_bytes: int | None = None
    seen_bytes: int = 0
    asked_at_bytes: int = 0
    waiting: bool = False


class StartupStacks:
    def __init__(self, cwd: Path, proc: Path = Path("/proc")) -> None:
        self._cwd = cwd
        self._proc = proc
        self._processes: dict[int, _Process] = {}
        self._over = False
        self._growing = False
        self._eager_until = self._looked_at = 0.0
        self._asked = 0

    @property
    def pace_s(self) -> float:
        eager = self._growing or self._looked_at < self._eager_until
        return EAGER_PACE_S if eager and not self._over else 1.0

    def look(self, readings: Iterable[Sample | Event], now: float) -> list[Event]:
        for reading in readings:
            if isinstance(reading, Event) and reading.kind == "stack.ready":
                pid = int(reading.data["pid"])
                signal, path = int(reading.data["signal"]), str(reading.data["path"])
                self._processes[pid] = _Process(pid, signal, path, int(reading.data.get("ask") or 0))
                self._eager_until = now + EAGER_FOR_S
            elif isinstance(reading, Sample) and reading.name.endswith(".steps_count"):
                self._over = True
        self._growing, self._looked_at = False, now
        answers = [answer for process in self._processes.values() for answer in self._answer(process, now)]
        if not self._over:
            answers += [found for process in self._processes.values() for found in self._look_at(process, now)]
        return answers

    def _look_at(self, process: _Process, now: float) -> list[Event]:
        held = self._held(process.pid)
        if held is None:
            return []
        if process.base_bytes is None:
            process.base_bytes = process.seen_bytes = held
        self._growing = self._growing or held > process.seen_bytes + GROWING_BYTES
        process.seen_bytes = held
        due = held > process.base_bytes + GROWN_BYTES and held > GROWN_RATIO * process.asked_at_bytes
        number = process.ask or process.signal
        if not due or self._asked >= MOST or not self._listens(process, number):
            return []
        with contextlib.suppress(OSError):  # late answers are old ones
            process.read_bytes = max(process.read_bytes, os.stat(process.path).st_size)
        with contextlib.suppress(OSError):
            os.kill(process.pid, number)
            process.asked_at_bytes, process.waiting, process.in_native_code = held, True, False
            self._asked += 1
        files = files_read(self._proc, process.pid, FILES, LEAST_FILE_BYTES)
        about = {"pid": process.pid, "held_bytes": held, "base_bytes": process.base_bytes, "files": files}
        return [Event("startup.files", now, about)] if files else []

    def _answer(self, process: _Process, now: float) -> list[Event]:
        if not process.waiting:
            return []
        try:
            with open(process.path, "rb") as answers:
                answers.seek(process.read_bytes)
                text = answers.read(LONGEST_ANSWER)
        except OSError:
            return []
        if not text.endswith(b"\n"):
            self._ask_in_native_code(process)
            return []
        process.read_bytes += len(text)
        process.waiting = False
        # Zeros are answers that somebody else has read and cleared.
        frames = self._frames(text.lstrip(b"\0").decode("utf-8", "replace"), process.pid)
        about = {"pid": process.pid, "held_bytes": process.asked_at_bytes, "base_bytes": process.base_bytes}
        return [Event("startup.stack", now, {**about, "frames": frames})] if frames else []

    def _ask_in_native_code(self, process: _Process) -> None:
        """Only then by faulthandler, which is not safe in a thread that runs Python (`inside/stacks.py`)."""
        if process.ask and not process.in_native_code and self._listens(process, process.signal):
            process.in_native_code = True
            with contextlib.suppress(OSError):
                os.kill(process.pid, process.signal)

    def _frames(self, text: str, pid: int) -> list[dict[str, object]]:
        """Innermost first, with the line of code where it is the script's own."""
        lines = text.splitlines()
        by_python = [frames for tid, _, _, frames in named_stacks(lines) if tid == pid]
        found = next((frames for frames in by_python if frames), current_frames(lines))[:FRAMES]
        found = tuple(dropwhile(lambda frame: frame.file.endswith(f"inside{os.sep}stacks.py"), found))
        return [asdict(replace(frame, code=self._code(frame))) for frame in found]

    def _code(self, frame: Frame) -> str:
        if is_library(frame.file):
            return ""
        return linecache.getline(str(self._cwd / frame.file), frame.line).strip()[:200]

    def _held(self, pid: int) -> int | None:
        try:
            return held_bytes((self._proc / str(pid) / "status").read_bytes())
        except OSError:
            return None

    def _listens(self, process: _Process, number: int) -> bool:
        """Looked up right before: to a program that has taken this one's place the signal would be the end."""
        with contextlib.suppress(OSError, ValueError):
            if process.path.startswith("/proc/") and NAME not in os.readlink(process.path):  # noqa: PTH115
                return False  # the script has closed it, and the number may be another file's by now
            for line in (self._proc / str(process.pid) / "status").read_text().splitlines():
                if line.startswith("SigCgt:"):
                    return bool(int(line.split()[1], 16) >> (number - 1) & 1)
        return False
