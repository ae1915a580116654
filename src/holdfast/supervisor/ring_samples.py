"""What the training processes write into their rings, as samples and events."""

from __future__ import annotations

import contextlib
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from holdfast.inside.ring import PHASES, STEP, STEP_BODY, TEXT, VALUE, VALUE_BODY, Reader
from holdfast.recorded_events import FIRST_TRAINER
from holdfast.vocabulary import Event, Sample

RINGS = 64  # processes; a job with more has its first ones read
EVENTS_OF_A_KIND = 200  # an attempt: phases and batch shapes come with every epoch…
RARE = ("checkpoint.", "rescue.", "command.", "numerics.")  # …while of these the last one matters
RARE_OF_A_KIND = 20_000  # a checkpoint a minute for two weeks


class RingSamples:
    """Reads every ring of a run. The first process that trains is `train.…`; further ones are `train[PID].…`."""

    def __init__(self, channel: Path) -> None:
        self._channel = channel
        self._processes: dict[str, _Process] = {}
        self._main_pid: int | None = None
        self._main_told = False
        self._events: Counter[str] = Counter()
        self.records_count = 0  # of all rings: it rises while anything is told
        self.phase = "start-up"

    def read(self, now: float) -> list[Sample | Event]:
        self._find_new()
        readings: list[Sample | Event] = []
        for process in self._processes.values():
            read = process.read(now, self._prefix)
            self.records_count += len(read)
            for reading in read:
                if isinstance(reading, Event) and reading.kind == "train.phase":
                    self.phase = str(reading.data.get("phase", self.phase))
                if isinstance(reading, Sample):
                    readings.append(reading)
                elif self._events[reading.kind] < (
                    RARE_OF_A_KIND if reading.kind.startswith(RARE) else EVENTS_OF_A_KIND
                ):
                    self._events[reading.kind] += 1
                    readings.append(reading)
        return [*self._who_is_first(now), *readings]

    def _who_is_first(self, now: float) -> list[Event]:
        """Whose signals have no process in their names."""
        if self._main_pid is None or self._main_told:
            return []
        self._main_told = True
        return [Event(FIRST_TRAINER, now, {"pid": self._main_pid})]

    def send(self, **command: Any) -> bool:
        """To the process that trains; False where none does."""
        for process in self._processes.values():
            if process.reader.pid == self._main_pid:
                process.reader.send(command)
                return True
        return False

    def trainers(self) -> list[int]:
        """Those that have taken a step."""
        return sorted(self.steps())

    def steps(self) -> dict[int, int]:
        """By process, of those that have taken one."""
        return {process.reader.pid: process.steps for process in self._processes.values() if process.stepped}

    def greeted(self) -> set[int]:
        return {process.reader.pid for process in self._processes.values()}

    def _prefix(self, pid: int) -> str:
        if self._main_pid is None:
            self._main_pid = pid
        return "train" if pid == self._main_pid else f"train[{pid}]"

    def _find_new(self) -> None:
        with contextlib.suppress(OSError):
            for name in os.listdir(self._channel):  # noqa: PTH208 - every tick
                if name.endswith(".ring") and name not in self._processes and len(self._processes) < RINGS:
                    with contextlib.suppress(OSError, ValueError):  # being created right now: read at the next look
                        self._processes[name] = _Process(Reader(str(self._channel / name)))


class _Process:
    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self._last_step_at: float | None = None
        self.steps = 0
        self._shape: tuple[int, ...] = ()

    @property
    def stepped(self) -> bool:
        return self._last_step_at is not None

    def read(self, now: float, prefix: Any) -> list[Sample | Event]:
        readings: list[Sample | Event] = []
        steps = []
        for kind, body in self.reader.read():
            if kind == STEP:
                steps.append(STEP_BODY.unpack(body))
            elif kind == VALUE:
                at, step, value, name = VALUE_BODY.unpack(body)
                signal = f"{prefix(self.reader.pid)}.{name.rstrip(bytes(1)).decode('utf-8', 'replace')}"
                readings.append(Sample(signal, value, at, step=step))
            elif kind == TEXT:
                readings += self._event(body)
        if steps:
            readings += self._summary(steps, prefix(self.reader.pid))
        return readings

    def _event(self, body: bytes) -> list[Event]:
        try:
            data = json.loads(body)
        except ValueError:
            return []
        return [Event(str(data.pop("kind")), float(data.pop("at")), {"pid": self.reader.pid, **data})]

    def _summary(self, steps: list[tuple[Any, ...]], prefix: str) -> list[Sample | Event]:
        """One sample of each signal for all the steps since the last look."""
        at, number, epoch, phase, _, _, _, dimensions, *shape = steps[-1]
        count = sum(step[4] for step in steps)
        wait_s, compute_s = sum(step[5] for step in steps), sum(step[6] for step in steps)
        began = self._last_step_at if self._last_step_at is not None else steps[0][0] - steps[0][5] - steps[0][6]
        elapsed = max(at - began, wait_s + compute_s, 1e-9)
        self._last_step_at, self.steps = at, number
        readings: list[Sample | Event] = [
            Sample(f"{prefix}.steps_count", number, at),
            Sample(f"{prefix}.epoch_count", epoch if epoch >= 0 else None, at, "" if epoch >= 0 else "not known"),
            Sample(f"{prefix}.step_s", elapsed / count, at),
            Sample(f"{prefix}.wait_ratio", wait_s / elapsed, at),
            Sample(f"{prefix}.compute_ratio", compute_s / elapsed, at),
            Sample(f"{prefix}.lost_records_count", self.reader.lost, at),
        ]
        seen = tuple(shape[:dimensions])
        if seen != self._shape:
            self._shape = seen
            about = {"pid": self.reader.pid, "shape": list(seen), "step": number, "phase": PHASES[phase]}
            readings.append(Event("train.batch", at, about))
        return readings
