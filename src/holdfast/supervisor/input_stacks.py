"""Where the data is prepared while training waits for it: some stacks of whoever prepares it, taken once, when the waiting has lasted.

A run that does not wait is never asked. What the stacks mean is for `detectors/input_stages` to say.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from statistics import median_low
from typing import Any

from holdfast.stack_snapshots import ProcessSnapshot, ThreadSnapshot, TreeSnapshot
from holdfast.supervisor.open_files import file_system_of, files_read
from holdfast.supervisor.stack_taking import StackTaking
from holdfast.vocabulary import Event, Sample

KIND = "input.stacks"
WAITS, FOR_S, READINGS, FIRST_STEPS = 0.5, 3.0, 3, 10
LOOKS, APART_S = (
    20,
    0.13,
)  # not a round number: steps may have one. Of eight looks the most frequent stage was not always the longest
FRAMES, THREADS, FILES = 30, 8, 2
PREPARES = ("torch/utils/data/", "script_ops.py", "data_adapters/", "holdfast/data/")  # in the stack of whoever does


class InputStacks:
    def __init__(self, taking: StackTaking, proc: Path = Path("/proc")) -> None:
        self._taking, self._proc = taking, proc
        self._waits: deque[tuple[float, float]] = deque()
        self._steps = 0.0
        self._looks: list[list[dict[str, Any]]] = []
        self._next_at = 0.0
        self._over = False

    @property
    def pace_s(self) -> float:
        return APART_S if self._looks or self._taking.under_way else 1.0

    def look(self, readings: Iterable[Sample | Event], trainers: set[int], now: float) -> list[Event]:
        if self._over:
            return []
        self._note(readings)
        snapshot = self._taking.result()
        if snapshot is not None:
            self._looks.append(self._of(snapshot, trainers))
        if len(self._looks) >= LOOKS:
            self._over = True
            cpus = len(os.sched_getaffinity(0))
            return [Event(KIND, now, {"looks": self._looks, "trainers": sorted(trainers), "cpus": cpus})]
        if self._is_starved() and now >= self._next_at and not self._taking.under_way and self._taking.begin():
            self._next_at = now + APART_S
        return []

    def _note(self, readings: Iterable[Sample | Event]) -> None:
        for reading in readings:
            if isinstance(reading, Sample) and reading.name == "train.steps_count":
                self._steps = reading.value or self._steps
            elif isinstance(reading, Sample) and reading.name == "train.wait_ratio" and self._steps > FIRST_STEPS:
                self._waits.append((reading.at, reading.value or 0.0))
        while len(self._waits) > READINGS and self._waits[-1][0] - self._waits[1][0] >= FOR_S:
            self._waits.popleft()

    def _is_starved(self) -> bool:
        """For some seconds, and half of the time at least: single steps may have waited less."""
        if len(self._waits) < READINGS or self._waits[-1][0] - self._waits[0][0] < FOR_S:
            return False
        return median_low(value for _, value in self._waits) > WAITS

    def _of(self, snapshot: TreeSnapshot, trainers: set[int]) -> list[dict[str, Any]]:
        found = [
            self._told(process, thread)
            for process in snapshot.processes
            for thread in process.threads
            if thread.frames and any(part in frame.file for frame in thread.frames for part in PREPARES)
        ]
        return found[:THREADS]

    def _told(self, process: ProcessSnapshot, thread: ThreadSnapshot) -> dict[str, Any]:
        ends = thread.wait.ends if thread.wait is not None else ()
        end = next((end for end in ends if end.what in ("file", "socket")), None)
        files = files_read(self._proc, process.pid, FILES)
        path = end.text if end is not None and end.what == "file" else str(files[0]["path"]) if files else ""
        return {
            "pid": process.pid,
            "state": thread.state,
            "wait": thread.wait.kind.value if thread.wait is not None else "",
            "on": end.what if end is not None else "",
            "file": path,
            "file_system": file_system_of(self._proc, process.pid, path) if path else "",
            "frames": [[f.file, f.line, f.function, f.code] for f in thread.frames[: min(FRAMES, 1 + _last(thread))]],
        }


def _last(thread: ThreadSnapshot) -> int:
    """The outermost frame of whoever has the data prepared: those around it say nothing more."""
    return max(number for number, frame in enumerate(thread.frames) if any(part in frame.file for part in PREPARES))
