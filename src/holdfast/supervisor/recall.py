"""What the watcher remembers for its detectors: the latest of every signal, and the whole course of a few."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from holdfast.vocabulary import Event, Sample, Window

REMEMBERED = 120  # samples of each signal: two minutes when quiet, six seconds when tight
EVENTS = 300
WHOLE_COURSE = (
    "train.rss_bytes",
    "train.rss_bytes_step_count",
    "train.allocated_bytes",
    "train.allocated_bytes_step_count",
    "train.steps_count",
    "train.epoch_count",
    "job.rss_bytes",
)
KEPT_EVENTS = ("train.", "gpu.found", "examined", "inside.hello")


class Recall:
    def __init__(self) -> None:
        self._latest: dict[str, deque[Sample]] = {}
        self._courses: dict[str, list[Sample]] = {}
        self._events: deque[Event] = deque(maxlen=EVENTS)

    def take(self, readings: Iterable[Sample | Event]) -> None:
        for reading in readings:
            if isinstance(reading, Event):
                if reading.kind.startswith(KEPT_EVENTS):
                    self._events.append(reading)
            elif reading.name in WHOLE_COURSE:
                self._add_to_course(reading)
            else:
                self._latest.setdefault(reading.name, deque(maxlen=REMEMBERED)).append(reading)

    def window(self) -> Window:
        series = {name: list(samples) for name, samples in self._latest.items()}
        return Window(self._events, series | self._courses)

    def _add_to_course(self, sample: Sample) -> None:
        """The older half is thinned by two each time it is full: the older, the coarser, and never forgotten."""
        course = self._courses.setdefault(sample.name, [])
        course.append(sample)
        if len(course) > 2 * REMEMBERED:
            course[:REMEMBERED] = course[:REMEMBERED:2]
