"""What the watcher remembers for its detectors: the latest of every signal, and the whole course of a few."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from holdfast.vocabulary import Event, Sample, Window

REMEMBERED = 120  # samples of each signal: two minutes when quiet, six seconds when tight
EVENTS = 300
WHOLE_COURSE = (
    "train.rss_bytes",
    "train.kept_bytes",
    "train.not_kept_bytes",
    "train.allocated_bytes",
    "train.steps_count",
    "train.epoch_count",
    "job.rss_bytes",
)
KEPT_EVENTS = ("train.", "gpu.found", "examined", "inside.hello")


class LiveWindow:
    def __init__(self) -> None:
        self._latest: dict[str, deque[Sample]] = {}
        self._courses: dict[str, _Course] = {}
        self._events: deque[Event] = deque(maxlen=EVENTS)

    def take(self, readings: Iterable[Sample | Event]) -> None:
        for reading in readings:
            if isinstance(reading, Event):
                if reading.kind.startswith(KEPT_EVENTS):
                    self._events.append(reading)
            elif reading.name in WHOLE_COURSE:
                self._courses.setdefault(reading.name, _Course()).add(reading)
            else:
                self._latest.setdefault(reading.name, deque(maxlen=REMEMBERED)).append(reading)

    def window(self) -> Window:
        return Window(self._events, self.series())

    def series(self) -> dict[str, list[Sample]]:
        latest = {name: list(samples) for name, samples in self._latest.items()}
        return latest | {name: course.samples() for name, course in self._courses.items()}


class _Course:
    """The latest as they came; of what is older an even choice over the whole run, coarser as it gets longer."""

    def __init__(self) -> None:
        self._latest: deque[Sample] = deque()
        self._older: list[Sample] = []
        self._every = 1
        self._passed = 0

    def add(self, sample: Sample) -> None:
        self._latest.append(sample)
        if len(self._latest) <= REMEMBERED:
            return
        passing = self._latest.popleft()
        if self._passed % self._every == 0:
            self._older.append(passing)
        self._passed += 1
        if len(self._older) > REMEMBERED:
            self._older = self._older[::2]
            self._every *= 2

    def samples(self) -> list[Sample]:
        return [*self._older, *self._latest]
