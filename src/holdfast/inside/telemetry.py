"""One schema for all frameworks: steps, and values that are read late.

An adapter says `waited`, `batch`, `epoch`, `phase`, and then `step`. What a hook costs is counted in microseconds, so
the plain path is attribute writes and one copy into the ring.
"""

from __future__ import annotations

import math
import time
from typing import Any, Callable, Optional

from .never_raise import guarded
from .ring import PHASES, Writer

READ_EVERY_S = 0.5  # values living on a device: at most two a second of each…
READ_AFTER_S = 0.2  # …and not before the device has had time to finish with them
READ_WITHIN_S = 30.0  # a queue that is longer than this is not waited for

LOOK_EVERY_S = 0.1
AT_FIRST_S, AT_FIRST_FOR_S = 0.02, 3.0  # a fast leak is at its end within seconds
LONGER = 1.1  # than the longest row before: worth an event of its own

LATER = "later"  # a command that says itself when it is done

now = time.perf_counter
wall_clock = time.time


class Recorder:
    def __init__(self, writer: Writer, settings: Optional[dict[str, Any]] = None) -> None:
        self.writer = writer
        self.settings = settings or {}  # of this attempt, from the supervisor
        self.steps = 0
        self.by_hand = False  # the script says itself when a step is over; adapters then do not
        self.epoch_number = -1
        self.phase_number = PHASES.index("start-up")
        self.wait_s = 0.0
        self.pieces = 1  # that a training step is run in, where its batch does not fit in memory
        self._shape: tuple[int, ...] = ()
        self._longest_row = 0
        self._offers: dict[str, _Offer] = {}
        self._looked_at = 0.0
        self._look_every_s = AT_FIRST_S
        self._first_look_at = 0.0
        self._commands: dict[str, Callable[[dict[str, Any]], object]] = {}
        self._looks: list[Callable[[float], None]] = []

    def after_fork(self, writer: Writer) -> None:
        """In a forked child: what the parent had begun is the parent's."""
        self.writer = writer
        self.steps = 0
        self.wait_s = 0.0
        self._offers.clear()

    # -- what an adapter reports

    def event(self, kind: str, **data: object) -> None:
        self.writer.text(kind, time.time(), **data)

    def cut(self, k: int, where: str) -> None:
        """The rescue runs batches in k pieces from now on."""
        if where == "train":
            self.pieces = k
        self.event("rescue.k", k=k, where=where)

    def epoch(self, number: int) -> None:
        self.epoch_number = number

    def phase(self, name: str) -> None:
        number = PHASES.index(name)
        if number != self.phase_number:
            self.phase_number = number
            self.event("train.phase", phase=name, step=self.steps)

    def waited(self, seconds: float) -> None:
        """Time spent waiting for data, for the step to come."""
        self.wait_s += seconds

    def batch(self, shape: tuple[int, ...]) -> None:
        if shape != self._shape:
            self._shape = shape
            row = math.prod(shape[1:])
            if row > LONGER * self._longest_row:  # told before the step, which may be the last
                self._longest_row = row
                self.event("train.longest", shape=list(shape[:4]), step=self.steps + 1)

    def step(self, compute_s: float, count: int = 1, counted: int = 0) -> None:
        """One optimizer step is over (or `count` of them, where the framework runs several at once).

        `counted`: earlier short steps that are in `steps` already and are reported together with this one.
        """
        if not self.by_hand:
            self.count_step(compute_s, count, counted)

    def count_step(self, compute_s: float, count: int = 1, counted: int = 0) -> None:
        at = wall_clock()
        self.steps += count
        told = count + counted
        self.writer.step(
            at, self.steps, self.epoch_number, self.phase_number, told, self.wait_s, compute_s, self._shape
        )
        self.wait_s = 0.0
        if not -1.0 < at - self._looked_at < self._look_every_s:  # a clock that was set back does not stop it
            self._looked_at = at
            self._now_and_then(now())

    def wants(self, name: str) -> bool:
        """Whether an offer of this value would be taken: ask before preparing one."""
        offer = self._offers.get(name)
        return offer is None or (offer.read is None and now() >= offer.next_at)

    def offer(self, name: str, read: Callable[[], Optional[float]]) -> None:
        """A value that lives on a device. It is read some tenths of a second later, on a later step.

        `read` must not keep the user's graph alive: give it a detached value, or an asynchronous copy already begun.
        """
        offer = self._offers.setdefault(name, _Offer())
        if offer.read is None:
            offer.read, offer.step, offer.ripe_at = read, self.steps, now() + READ_AFTER_S

    def on_command(self, name: str, do: Callable[[dict[str, Any]], object]) -> None:
        self._commands[name] = do

    def on_look(self, look: Callable[[float], None]) -> None:
        """Called at a step's boundary with the moment: at most ten times a second, fifty in the first seconds."""
        self._looks.append(look)

    # -- at most ten times a second, at first some more

    @guarded
    def _now_and_then(self, moment: float) -> None:
        self._first_look_at = self._first_look_at or moment
        if moment - self._first_look_at > AT_FIRST_FOR_S:
            self._look_every_s = LOOK_EVERY_S
        for name, offer in self._offers.items():
            if offer.read is not None and moment >= offer.ripe_at:
                read, offer.read = offer.read, None
                offer.next_at = moment + READ_EVERY_S
                value = read()
                if value is None and moment < offer.ripe_at + READ_WITHIN_S:
                    offer.read = read  # the device is not there yet: asked again
                elif value is not None:
                    self.writer.value(time.time(), offer.step, name, float(value))
        for look in self._looks:
            look(moment)
        self.obey()

    @guarded
    def obey(self) -> None:
        """Carries out a command of the watcher's, at a step's boundary."""
        command = self.writer.command()
        if command is None:
            return
        do = self._commands.get(str(command.get("do")))
        result = do(command) if do is not None else "unknown"
        if result == LATER:
            return
        self.event("command.done", id=command.get("id"), do=command.get("do"), result=result)


class _Offer:
    __slots__ = ("next_at", "read", "ripe_at", "step")

    def __init__(self) -> None:
        self.read: Optional[Callable[[], Optional[float]]] = None
        self.step = 0
        self.ripe_at = 0.0
        self.next_at = 0.0
