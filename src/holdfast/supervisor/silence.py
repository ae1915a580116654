"""How long nothing has moved in a job, and when its stacks are to be taken for that. Pure: no clock, no processes.

Silence is time without a record from the training processes, without output and without bytes read or written. Time does not count
in which the whole job is stopped (Ctrl-Z, the guard), nor what the clock jumps by (a laptop that slept, a watcher that got no turn).
How long a silence must be depends on what this job has shown so far: ten typical steps, or ten times its longest pause.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from holdfast.vocabulary import Event, Sample


@dataclass(frozen=True, slots=True)
class Limits:
    soon_s: float = 10.0  # at least, for what cannot end
    late_s: float = 90.0  # at least, for what may yet end
    typical_steps: int = 10
    pauses: int = 10  # times the longest one seen
    apart_s: float = 3.0  # between the two looks of a pair
    moved_bytes: float = 64 << 10  # between two readings; polling moves some
    longest_turn_s: float = 3.0  # of the watcher: more is a clock that jumped, or a machine that stood still
    looks_again: tuple[float, ...] = (2.0, 3.0, 6.0)  # times `soon_s`, then at `late_s`, then every minute
    every_s: float = 60.0
    most: int = 60  # pairs a run


OWN_DUMP_S = 3.0  # the answers are bytes that the job writes


class Silence:
    """What was read in each turn -> seconds, and whether stacks are wanted now."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self.silent_s = 0.0
        self._at: float | None = None
        self._steps_s: deque[float] = deque(maxlen=30)
        self._longest_s: dict[str, float] = {}
        self._phase = ""
        self._moved_bytes: float | None = None
        self._asked_at_s: list[float] = []  # silent seconds at which stacks were asked for
        self._asked_at: float = float("-inf")
        self._pairs = 0

    @property
    def soon_s(self) -> float:
        typical = median(self._steps_s) if self._steps_s else 0.0
        return max(self._limits.soon_s, self._limits.typical_steps * typical)

    @property
    def late_s(self) -> float:
        longest = self._longest_s.get(self._phase, 0.0)
        return max(self._limits.late_s, self._limits.pauses * longest, self.soon_s)

    def turn(self, now: float, readings: Iterable[Sample | Event], told: bool, phase: str) -> None:
        """`now`: by a clock that stands still while the machine sleeps. `told`: output came, or a record from inside."""
        values = {reading.name: reading for reading in readings if isinstance(reading, Sample)}
        self._steps_s.extend(
            sample.value for name, sample in values.items() if name == "train.step_s" and sample.value is not None
        )
        passed_s = min(now - self._at, self._limits.longest_turn_s) if self._at is not None else 0.0
        self._at = now
        if told or self._bytes_moved(values, now):
            self._longest_s[self._phase] = max(self._longest_s.get(self._phase, 0.0), self.silent_s)
            self._begin_again()
        elif _all_stopped(values):
            self._begin_again()
        else:
            self.silent_s += passed_s
        self._phase = phase

    def wanted(self) -> bool:
        """Whether stacks are to be taken now: two a few seconds apart, then again from time to time."""
        if self._pairs >= self._limits.most:
            return False
        if len(self._asked_at_s) % 2:
            return self.silent_s - self._asked_at_s[-1] >= self._limits.apart_s
        return self.silent_s >= self._next_pair_s()

    def asked(self, now: float) -> None:
        self._asked_at = now
        self._asked_at_s.append(self.silent_s)
        self._pairs += not len(self._asked_at_s) % 2

    def _next_pair_s(self) -> float:
        done = len(self._asked_at_s) // 2
        moments = sorted({self.soon_s * factor for factor in (1.0, *self._limits.looks_again)} | {self.late_s})
        if done < len(moments):
            return moments[done]
        return moments[-1] + (done - len(moments) + 1) * self._limits.every_s

    def _bytes_moved(self, values: dict[str, Sample], now: float) -> bool:
        sample = values.get("job.moved_bytes")
        if sample is None or sample.value is None:
            return False
        before, self._moved_bytes = self._moved_bytes, sample.value
        answering = now - self._asked_at < OWN_DUMP_S
        return before is not None and not answering and sample.value - before >= self._limits.moved_bytes

    def _begin_again(self) -> None:
        self.silent_s = 0.0
        self._asked_at_s.clear()


def _all_stopped(values: dict[str, Sample]) -> bool:
    stopped, processes = values.get("job.stopped_count"), values.get("job.processes_count")
    return bool(stopped and processes and stopped.value and processes.value and stopped.value >= processes.value)
