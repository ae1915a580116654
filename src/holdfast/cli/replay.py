"""Goes through a record as the watcher went through the run: the same window, the same detectors, turn by turn.

So what `why` knows of a run while it went on is found by the detectors of today, not read back from what was told then.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter

from holdfast import detectors
from holdfast.detectors.leak import LEAKS
from holdfast.detectors.runner import DetectorRunner
from holdfast.policy import warn
from holdfast.recorded_events import Exit
from holdfast.vocabulary import Event, Finding, Output, Policy, Sample, Window
from holdfast.windows import Reads, WindowBuilder

LOOKS = 300  # at most, spread over a run: all detectors together take about a millisecond each
PATIENCE_S = 30.0  # with one detector
ATTEMPTS_TOLD = 8  # the last ones of a run that was started again very often
ENDS = (Exit.KIND, Exit.OF_AN_ATTEMPT, "aftermath")
_at = attrgetter("at")
Printed = Callable[[float, float], Mapping[str, bytes]]


@dataclass(frozen=True, slots=True)
class Attempt:
    window: Window
    told: tuple[Finding, ...]  # while it went on, each cause as it was told last


def turns(samples: Iterable[Sample], events: Iterable[Event]) -> Iterator[tuple[float, list[Sample | Event]]]:
    """The watcher's turns: what was read at once, and the events up to then."""
    waiting = deque(events)
    for at, read in groupby(samples, key=_at):
        came: list[Sample | Event] = []
        while waiting and waiting[0].at <= at:
            came.append(waiting.popleft())
        yield at, [*came, *read]
    if waiting:
        yield waiting[-1].at, list(waiting)


class Replay:
    def __init__(
        self, declared: Reads, restarts: Sequence[float] = (), printed: Printed | None = None, pause_s: float = 0.0
    ) -> None:
        """`restarts`: when another attempt began. `printed`: the output between two times, by stream.

        Between two looks at least `pause_s` of the run's time pass.
        """
        self._window = WindowBuilder(declared)
        self._restarts = deque(restarts)
        self._printed = printed
        self._began = float("-inf")
        self._pause_s = pause_s
        self._looked_at = self._read_at = float("-inf")
        self._over = False  # the script of this attempt has ended: nobody looks any more but once
        self._decided_at: dict[str, float] = {}
        self._detectors = DetectorRunner(detectors.WHILE_RUNNING, slow_s=PATIENCE_S, hung_s=0.0)
        self._last_detectors = DetectorRunner(detectors.ONCE_AFTER_EXIT, slow_s=PATIENCE_S, hung_s=0.0)
        self._told: list[tuple[float, Finding]] = []
        self.told: list[tuple[float, Finding]] = []  # over all attempts, with the time
        self.attempts: list[Attempt] = []

    def turn(self, at: float, readings: Sequence[Sample | Event]) -> None:
        while self._restarts and at >= self._restarts[0]:
            border = self._restarts.popleft()
            self._take([reading for reading in readings if reading.at < border])
            readings = [reading for reading in readings if reading.at >= border]
            self.end_attempt(border)
        self._take(readings)
        if not self._over and at - self._looked_at >= self._pause_s:
            self._look(self._detectors, at)

    def _take(self, readings: Sequence[Sample | Event]) -> None:
        events = [reading for reading in readings if isinstance(reading, Event)]
        if not self._over and any(event.kind in ENDS for event in events):
            self._catch_up()
            self._over = True
        # Hundreds of thousands of samples come without an event: only where there is one is each looked at.
        self._window.take(map(_as_its_own_end, readings) if events else readings)
        self._read_at = max(map(_at, readings), default=self._read_at)

    def _catch_up(self) -> None:
        if self._read_at > self._looked_at:
            self._look(self._detectors, self._read_at)

    def end_attempt(self, at: float) -> None:
        if not self._over:
            self._catch_up()
        self._look(self._last_detectors, min(at, max(self._read_at, self._looked_at)))
        if self._printed is not None and len(self._restarts) < ATTEMPTS_TOLD:
            output = self._printed(self._began, at)
            self._window.take(Output(stream, at, data) for stream, data in output.items())
        self._began = at
        self.attempts.append(Attempt(self._window.window(), tuple({f.cause: f for _, f in self._told}.values())))
        self.told += self._told
        self._told, self._over = [], False
        self._window.begin_again()
        self._decided_at = {key: at for key, at in self._decided_at.items() if not key.startswith(LEAKS)}

    def switched_off(self, now: float) -> list[Event]:
        return [*self._detectors.switched_off(now), *self._last_detectors.switched_off(now)]

    def close(self) -> None:
        self._detectors.close()
        self._last_detectors.close()

    def _look(self, runner: DetectorRunner, at: float) -> None:
        self._looked_at = at
        findings = runner.find(self._window.window(detectors.READ_WHILE_RUNNING))
        for decision in warn.decide(findings, Policy.ADVISE, self._decided_at, at):
            self._decided_at[decision.key] = at
            self._told += [(at, finding) for finding in findings if finding.key == decision.key]
        self._told = [(at, next((f for f in findings if f.adds_to(told)), told)) for at, told in self._told]


def _as_its_own_end(reading: Sample | Event) -> Sample | Event:
    """An attempt that was followed by another, read as if it had been the only one."""
    ended = isinstance(reading, Event) and reading.kind == Exit.OF_AN_ATTEMPT
    return Exit.of(reading).event(reading.at) if ended and isinstance(reading, Event) else reading
