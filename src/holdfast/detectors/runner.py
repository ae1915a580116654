"""Calls every detector alone: one that raises, hangs or is slow again and again is switched off, and the others go on.

They run in a worker thread, in the order given. A call that lasts longer than `slow_s` is left behind in its thread, and
another worker goes on with the rest: so a turn is late by at most `slow_s` for each slow detector, whatever it does.
"""

from __future__ import annotations

import ctypes
import queue
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from holdfast.recorded_events import DetectorOff
from holdfast.vocabulary import Event, Finding, Window
from holdfast.windows import NOTHING, Reads

SLOW_S = 0.2  # the pace of a watcher that sees memory get tight; all detectors together take about 2 ms
SLOW_CALLS = 3
FORGIVEN_AFTER = 60  # prompt calls in a row, a minute when quiet: one stall a day is the machine's, not the detector's
HUNG_S = 5.0  # one call as long as this is enough
HUNG_WHILE_PAGING_S = 60.0  # a machine that swaps holds up any call
WORTH_A_LOOK_S = 0.05  # below it nobody asks what the machine's part in a call was
FRAMES = 3
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Detector:
    name: str
    find: Callable[[Window], Finding | Sequence[Finding] | None]
    reads: Reads = NOTHING

    def findings(self, window: Window) -> Sequence[Finding]:
        found = self.find(window)
        return () if found is None else (found,) if isinstance(found, Finding) else found


@dataclass(slots=True, eq=False)
class Slot:
    detector: Detector
    off: bool = False
    slow_calls: int = 0
    prompt_calls: int = 0
    left_in: Turn | None = None  # the turn whose worker is still inside this detector


@dataclass(frozen=True, slots=True)
class Answer:
    slot: Slot
    findings: Sequence[Finding]
    error: BaseException | None
    took_s: float
    charged_s: float  # of that, the detector's own


class Turn:
    """One look at a window by the detectors that are due, carried out by a worker."""

    def __init__(self, window: Window, slots: Sequence[Slot]) -> None:
        self._window = window
        self._changed = threading.Condition()
        self._waiting = deque(slots)
        self.rest: list[Slot] = []  # not called yet when the worker was left behind
        self._answers: list[Answer] = []
        self._running: Slot | None = None
        self._began = time.monotonic()
        self._held_up = HeldUp(0.0, 0)
        self._thread_id = self._python_thread = 0
        self._finished = False

    def carry_out(self) -> None:
        """By the worker."""
        self._thread_id, self._python_thread = threading.get_native_id(), threading.get_ident()
        self._held_up = held_up(self._thread_id)
        while (slot := self._next()) is not None:
            findings, error = _call(slot.detector, self._window)
            took_s = time.monotonic() - self._began
            charged_s = self._charged(took_s) if took_s > WORTH_A_LOOK_S else took_s
            with self._changed:
                self._running = None
                self._answers.append(Answer(slot, findings, error, took_s, charged_s))
        with self._changed:
            self._finished = True
            self._changed.notify_all()

    def _next(self) -> Slot | None:
        with self._changed:
            self._running = self._waiting.popleft() if self._waiting else None
            self._began = time.monotonic()
            return self._running

    def wait(self, slow_s: float) -> Slot | None:
        """Until it is done, or one call lasts too long: then that one's detector, and its worker takes no further one."""
        with self._changed:
            while not self._finished:
                left_s = self._began + slow_s - time.monotonic()
                if left_s <= 0 and self._running is not None:
                    self.rest = list(self._waiting)
                    self._waiting.clear()
                    return self._running
                self._changed.wait(max(left_s, 0.001))
        return None

    def take_answers(self) -> list[Answer]:
        with self._changed:
            answers, self._answers = self._answers, []
        return answers

    def interrupt(self) -> None:
        """Ends an endless loop in Python, which would keep a processor busy; native code is not reached by it."""
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._python_thread), ctypes.py_object(SystemExit))

    def running_s(self) -> float:
        """How long the call has lasted that is going on."""
        return self._charged(time.monotonic() - self._began)

    def _charged(self, took_s: float) -> float:
        """What of a call's duration is the detector's own: no time in the run queue, nothing while pages were read in."""
        now = held_up(self._thread_id)
        if now.major_faults > self._held_up.major_faults:
            return took_s * HUNG_S / HUNG_WHILE_PAGING_S
        return max(0.0, took_s - (now.run_queue_s - self._held_up.run_queue_s))


class Worker:
    """A thread that carries out turns. One that was left behind ends when it gets out of its call."""

    def __init__(self) -> None:
        self._turns: queue.SimpleQueue[Turn | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name="holdfast-detectors", daemon=True).start()

    def do(self, turn: Turn | None) -> None:
        self._turns.put(turn)

    def _run(self) -> None:
        while (turn := self._turns.get()) is not None:
            turn.carry_out()


class DetectorRunner:
    def __init__(self, detectors: Sequence[Detector], slow_s: float = SLOW_S, hung_s: float = HUNG_S) -> None:
        self._slots = [Slot(detector) for detector in detectors]
        self._slow_s = slow_s
        self._hung_s = hung_s
        self._worker: Worker | None = None
        self._off: list[DetectorOff] = []
        self._broken: set[str] = set()

    def find(self, window: Window) -> list[Finding]:
        """What the detectors see that are not switched off, in their order."""
        self._look_after_those_left_behind()
        findings: list[Finding] = []
        rest = [slot for slot in self._slots if not slot.off and slot.left_in is None]
        while rest:
            turn = Turn(window, rest)
            self._give(turn)
            late = turn.wait(self._slow_s)
            answers = turn.take_answers()
            for answer in answers:
                findings += answer.findings
                self._judge(answer)
            if late is not None:
                self.close()  # ends once it is out of that call
                if late not in [answer.slot for answer in answers]:
                    late.left_in = turn
                    self._switch_off_if_hung(late)
            rest = turn.rest
        return findings

    def alone(self, name: str, call: Callable[[Window], T], window: Window, otherwise: T) -> T:
        """A pure function of the same window that is no detector, under the same rule; once it raised, `otherwise`."""
        if name in self._broken:
            return otherwise
        try:
            return call(window)
        except Exception as error:  # noqa: BLE001 -- the detectors' edge: watching goes on and the journal says so
            self._broken.add(name)
            self._off.append(_told(name, error))
            return otherwise

    def switched_off(self, now: float) -> list[Event]:
        """Those since the last call, an event each."""
        told, self._off = self._off, []
        return [off.event(now) for off in told]

    def close(self) -> None:
        if self._worker is not None:
            self._worker.do(None)
            self._worker = None

    def _give(self, turn: Turn) -> None:
        try:
            self._worker = self._worker or Worker()
        except RuntimeError:  # no thread to be had: the job has used up its limit on processes
            turn.carry_out()
        else:
            self._worker.do(turn)

    def _look_after_those_left_behind(self) -> None:
        for slot in self._slots:
            if slot.left_in is None:
                continue
            for answer in slot.left_in.take_answers():  # its findings are of an old window
                slot.left_in = None
                self._judge(answer)
                break
            else:
                self._switch_off_if_hung(slot)

    def _judge(self, answer: Answer) -> None:
        slot = answer.slot
        if slot.off:
            return
        if answer.error is not None:
            self._switch_off(slot, _told(slot.detector.name, answer.error))
        elif answer.charged_s < self._slow_s:
            slot.prompt_calls += 1
            if slot.prompt_calls >= FORGIVEN_AFTER:
                slot.slow_calls = 0
        else:
            slot.slow_calls, slot.prompt_calls = slot.slow_calls + 1, 0
            if slot.slow_calls >= SLOW_CALLS:
                reason = f"took {answer.took_s:.1f} s for a look, {SLOW_CALLS} times"
                self._switch_off(slot, DetectorOff(slot.detector.name, reason))

    def _switch_off_if_hung(self, slot: Slot) -> None:
        turn = slot.left_in
        if turn is not None and (seconds := turn.running_s()) >= self._hung_s:
            self._switch_off(slot, DetectorOff(slot.detector.name, f"did not answer for {seconds:.0f} s"))
            slot.left_in = None  # nobody touches that turn again: its thread may be ended while it holds the lock
            turn.interrupt()

    def _switch_off(self, slot: Slot, off: DetectorOff) -> None:
        slot.off = True
        self._off.append(off)


def _call(detector: Detector, window: Window) -> tuple[Sequence[Finding], BaseException | None]:
    try:
        return detector.findings(window), None
    except BaseException as error:  # noqa: BLE001 -- whatever a detector does, the others go on and the journal says so
        return (), error


def _told(name: str, error: BaseException) -> DetectorOff:
    frames = traceback.extract_tb(error.__traceback__)[-FRAMES:]
    places = tuple(
        f"{frame.filename}:{frame.lineno} in {frame.name}: {frame.line or ''}".rstrip(": ") for frame in frames
    )
    return DetectorOff(name, f"{type(error).__name__}: {error}".rstrip(": "), places)


@dataclass(frozen=True, slots=True)
class HeldUp:
    """What the machine cost a thread so far."""

    run_queue_s: float
    major_faults: int


def held_up(thread_id: int, root: Path = Path("/proc/self/task")) -> HeldUp:
    """Zeros where the kernel does not say."""
    folder = root / str(thread_id)
    try:
        run_queue_ns = int((folder / "schedstat").read_bytes().split()[1])
        faults = int((folder / "stat").read_bytes().rpartition(b")")[2].split()[9])
    except (OSError, IndexError, ValueError):
        return HeldUp(0.0, 0)
    return HeldUp(run_queue_ns / 1e9, faults)
