"""Runs the probes so that none can block the watcher or stop the others."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.probes.contract import Missing, Probe, Reading, Scope
from holdfast.probes.listing import PROBES
from holdfast.vocabulary import Event, Sample

WAIT_S = 0.25  # that one poll waits for the worker before it returns what there is
CLOSING_S = 2.0  # for the last look, after the script has ended
EARLY_S = 0.05  # a poll this much before a probe is due still reads it
REASONS_A_PROBE = 20  # different failures of a probe that are recorded
LONGEST_REST_S = 60.0  # for a probe that is late again and again


@dataclass(slots=True, eq=False)
class Slot:
    """One probe and what is known about it."""

    kind: type[Probe]
    probe: Any = None
    due: float = float("-inf")
    dropped: bool = False
    signals: dict[str, None] = field(default_factory=dict)
    reasons: set[str] = field(default_factory=set)
    late: int = 0
    set_aside_at: float | None = None
    last_gap: float = float("-inf")


@dataclass(slots=True)
class Task:
    slot: Slot
    verb: str  # read, closing or close
    now: float


class Worker:
    """A thread that runs tasks in turn. Once abandoned it takes no more, and ends when its call returns."""

    def __init__(self, runner: ProbeRunner) -> None:
        self.task: Task | None = None
        self.began = 0.0
        self.abandoned = False
        self._runner = runner
        threading.Thread(target=self._run, name="holdfast-probes", daemon=True).start()

    def _run(self) -> None:
        while (task := self._runner.next_task(self)) is not None:
            readings = self._runner.carry_out(task)
            self._runner.finish(self, task, readings)


class ProbeRunner:
    def __init__(self, scope: Scope, probes: Sequence[type[Probe]] = PROBES, deadline_s: float = 1.0) -> None:
        self._scope = scope
        self._deadline_s = deadline_s
        self._slots = [Slot(kind, signals=dict.fromkeys(getattr(kind, "signals", ()))) for kind in probes]
        self._changed = threading.Condition()
        self._tasks: deque[Task] = deque()
        self._done: list[Reading] = []
        self._worker: Worker | None = None
        self._thread_trouble = False
        self._last_now = float("-inf")
        self._ended = False

    def poll(self, now: float, everything: bool = False) -> list[Sample | Event]:
        """Readings since the last call. Returns within about a quarter of a second, whatever the probes do."""
        with self._changed:
            if now < self._last_now:  # the clock was set back: everything is due
                for slot in self._slots:
                    slot.due = slot.last_gap = float("-inf")
            self._last_now = now
            waiting = {id(task.slot) for task in self._tasks} | {id(self._running())}
            for slot in self._slots:
                due = everything or now >= slot.due - EARLY_S
                if due and slot.set_aside_at is None and not slot.dropped and id(slot) not in waiting:
                    slot.due = now + slot.kind.every_s
                    self._tasks.append(Task(slot, "read", now))
        return self._work(now, min(WAIT_S, self._deadline_s))

    def closing(self, now: float) -> list[Sample | Event]:
        """The last look, right after the script died."""
        with self._changed:
            self._tasks.clear()
            for slot in self._slots:
                if slot.set_aside_at is None and not slot.dropped:
                    self._tasks.append(Task(slot, "closing", now))
        return self._work(now, CLOSING_S)

    def close(self) -> None:
        with self._changed:
            self._tasks.clear()
            for slot in self._slots:
                if slot.set_aside_at is None and hasattr(slot.probe, "close"):
                    self._tasks.append(Task(slot, "close", 0.0))
        self._work(0.0, self._deadline_s)
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def _work(self, now: float, patience_s: float) -> list[Reading]:
        """Waits for the worker while it makes progress; abandons it, inside its probe, when it does not."""
        until = time.monotonic() + patience_s
        with self._changed:
            self._ensure_worker(now)
            self._changed.notify_all()
            while self._tasks or self._running() is not None:
                self._abandon_late_worker(now)
                left = until - time.monotonic()
                if left <= 0 or self._worker is None:
                    break
                self._changed.wait(min(left, self._time_to_deadline()))
            for slot in self._slots:
                self._report_missing(slot, now)
            done, self._done = self._done, []
        return done

    def _running(self) -> Slot | None:
        return self._worker.task.slot if self._worker is not None and self._worker.task is not None else None

    def _time_to_deadline(self) -> float:
        if self._worker is None or self._worker.task is None:
            return self._deadline_s
        return max(0.001, self._worker.began + self._deadline_s - time.monotonic())

    def _ensure_worker(self, now: float) -> None:
        if self._worker is not None or not self._tasks:
            return
        try:
            self._worker = Worker(self)
            self._thread_trouble = False
        except RuntimeError as error:  # no thread can be started: the job may have used up the limit on processes
            self._tasks.clear()
            if not self._thread_trouble:
                self._done.append(Event("probe.failed", now, {"probe": "runner", "reason": str(error)}))
            self._thread_trouble = True

    def _abandon_late_worker(self, now: float) -> None:
        worker = self._worker
        if worker is None or worker.task is None or time.monotonic() - worker.began < self._deadline_s:
            return
        slot = worker.task.slot
        worker.abandoned = True
        self._worker = None
        slot.set_aside_at = worker.began
        slot.late += 1
        slot.last_gap = float("-inf")
        about = {"probe": slot.kind.name, "after_s": self._deadline_s}
        self._done.append(Event("probe.late", now, about))
        self._tasks = deque(task for task in self._tasks if task.slot is not slot)
        self._ensure_worker(now)

    def _report_missing(self, slot: Slot, now: float) -> None:
        if slot.set_aside_at is None or now - slot.last_gap < max(1.0, slot.kind.every_s) - EARLY_S:
            return
        slot.last_gap = now
        reason = f"no answer for {time.monotonic() - slot.set_aside_at:.0f} s"
        self._done += [Sample(name, None, now, reason) for name in slot.signals]

    # What follows is called by the worker.

    def next_task(self, worker: Worker) -> Task | None:
        with self._changed:
            while not self._tasks and not worker.abandoned and not self._ended:
                self._changed.wait()
            if worker.abandoned or not self._tasks:
                return None
            worker.task, worker.began = self._tasks.popleft(), time.monotonic()
            return worker.task

    def carry_out(self, task: Task) -> list[Reading]:
        slot = task.slot
        try:
            if slot.probe is None:
                slot.probe = slot.kind(self._scope)
            if task.verb == "close":
                slot.probe.close()
                return []
            look = getattr(slot.probe, task.verb, slot.probe.read)
            return list(look(task.now))
        except Missing as reason:
            slot.dropped = True
            about = {"probe": slot.kind.name, "reason": str(reason), "tell": reason.tell}
            return [Event("probe.missing", task.now, about)]
        except Exception as error:  # noqa: BLE001 -- whatever a probe does, the others go on and the journal says so
            return self._failed(slot, error, task.now)

    def _failed(self, slot: Slot, error: Exception, now: float) -> list[Reading]:
        reason = f"{type(error).__name__}: {error}".rstrip(": ")
        readings: list[Reading] = [Sample(name, None, now, reason) for name in slot.signals]
        if reason not in slot.reasons and len(slot.reasons) < REASONS_A_PROBE:
            slot.reasons.add(reason)
            readings.append(Event("probe.failed", now, {"probe": slot.kind.name, "reason": reason}))
        return readings

    def finish(self, worker: Worker, task: Task, readings: list[Reading]) -> None:
        """Events count even when they come late; samples that come late have been reported as missing."""
        slot = task.slot
        with self._changed:
            worker.task = None
            slot.signals.update((reading.name, None) for reading in readings if isinstance(reading, Sample))
            if worker.abandoned:
                self._done += [reading for reading in readings if isinstance(reading, Event)]
                took_s = time.monotonic() - worker.began
                self._done.append(Event("probe.back", task.now, {"probe": slot.kind.name, "after_s": round(took_s, 1)}))
                slot.set_aside_at = None
                if slot.late > 1:  # late repeatedly: read more and more rarely
                    slot.due = task.now + took_s + min(LONGEST_REST_S, 2.0**slot.late)
            else:
                self._done += readings
            self._changed.notify_all()
