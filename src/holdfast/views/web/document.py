"""One run as the page and the report draw it: its signals thinned, what happened and when, its output, its machine.

Reads what is new in the journal and keeps it, so that a page that is watched costs the watcher nothing and us little.
"""

from __future__ import annotations

import gc
import shlex
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from holdfast.journal import Follower
from holdfast.journal.format import Bucket, Row
from holdfast.masking import masked_command, masked_output
from holdfast.recorded_events import Exit
from holdfast.stack_snapshots import RecordedStacks
from holdfast.views.timeline import Moment, timeline
from holdfast.views.web.charts import charts
from holdfast.views.web.course import POINTS, Courses, packed, thinned
from holdfast.views.web.printed import Printed
from holdfast.vocabulary import Event

KEPT_UPDATES = 120  # a page that was away for longer gets all of it again
KEPT_EVENTS = 20_000
KEPT_STACKS = 3
STARTS = ("run.start", "attempt.start")
# Everything else is told by the timeline or by nobody: a day of training has thousands of them.
ABOUT = frozenset(
    (*STARTS, Exit.KIND, "run.end", "machine", "framework.loaded", "inside.hello", "gpu.found", "capabilities")
)


class RunDocument:
    def __init__(self, run: Path) -> None:
        self.run = run
        self.courses = Courses()
        self.printed = Printed()
        self.version = 0
        self.last_at: float | None = None
        self._follower = Follower(run / "journal")
        self._events: list[Event] = []
        self._stacks: deque[Event] = deque(maxlen=KEPT_STACKS)
        self._updates: deque[tuple[int, Mapping[str, tuple[list[float], list[float]]]]] = deque(maxlen=KEPT_UPDATES)

    # -- reading

    def update(self) -> bool:
        """Takes what is new; whether there was anything. No cycles are made: looking for them would take a fourth of the time."""
        collects = gc.isenabled()
        gc.disable()
        try:
            return self._update()
        finally:
            if collects:
                gc.enable()

    def _update(self) -> bool:
        readings: list[tuple[Row | Bucket, float]] = []
        events: list[Event] = []
        heard = False
        for stream in self._follower.records():
            for record, since in stream:
                self.last_at = max(self.last_at or record.at, record.at)
                if isinstance(record, (Row, Bucket)):
                    readings.append((record, since))
                elif isinstance(record, Event):
                    events.append(record)
                else:
                    heard = True
                    self.printed.take(record)
        self._take_events(events)
        if readings or events or heard:
            self.version += 1
            self._updates.append((self.version, self.courses.take(readings)))
            return True
        return False

    def _take_events(self, events: Sequence[Event]) -> None:
        self._stacks.extend(event for event in events if event.kind == RecordedStacks.KIND)
        self._events = sorted([*self._events, *events], key=lambda event: event.at)
        if len(self._events) > KEPT_EVENTS:
            about = [event for event in self._events[:-KEPT_EVENTS] if event.kind in ABOUT]
            self._events = [*about, *self._events[-KEPT_EVENTS:]]

    # -- what is known

    def events(self, *kinds: str) -> list[Event]:
        return [event for event in self._events if not kinds or event.kind in kinds]

    @property
    def start(self) -> Event | None:
        return next(iter(self.events("run.start")), None)

    @property
    def starts(self) -> list[Event]:
        return self.events(*STARTS)

    @property
    def exit(self) -> Event | None:
        return next(reversed(self.events(Exit.KIND)), None)

    @property
    def is_over(self) -> bool:
        return bool(self.events("run.end"))

    @property
    def origin(self) -> float:
        """What the times of the document count from."""
        if self.start is not None:
            return self.start.at
        return min((course.times[0] for course in self.courses.of.values() if course.times), default=0.0)

    @property
    def command(self) -> str:
        words = self.start.data.get("command", ()) if self.start is not None else ()
        return shlex.join(masked_command([*map(str, words)]))

    @property
    def moments(self) -> list[Moment]:
        return timeline(self._events)

    @property
    def stacks(self) -> list[RecordedStacks]:
        return [RecordedStacks.of(event) for event in self._stacks]

    def last(self, name: str) -> float | None:
        course = self.courses.of.get(name)
        return course.last if course is not None else None

    def highest(self, name: str) -> float | None:
        course = self.courses.of.get(name)
        return course.highest if course is not None else None

    # -- as JSON

    def charts(self) -> list[dict[str, Any]]:
        return charts(self.courses.of, self.courses.has)

    def whole(self, points: int = POINTS, more: bool = True) -> dict[str, Any]:
        """Without `more` the signals that are drawn at once, and of the rest only which there are."""
        there = self.charts()
        drawn = {line["signal"] for chart in there if more or not chart["more"] for line in chart["lines"]}
        return {**self._about(), "charts": there, "signals": self.signals(drawn, points)}

    def signals(self, names: Iterable[str], points: int = POINTS) -> dict[str, dict[str, Any]]:
        found = {}
        for name in sorted(names):
            course = self.courses.of[name]
            times, values = thinned(course.times, course.values, points)
            found[name] = {**self._packed(times, values), "not_finite": self._since_start(course.not_finite)}
        return found

    def since(self, version: int) -> dict[str, Any] | None:
        """What came after that version; None where only the whole will do."""
        if version > self.version or (self._updates and version < self._updates[0][0] - 1):
            return None
        new: dict[str, tuple[list[float], list[float]]] = {}
        for number, signals in self._updates:
            if number > version:
                for name, (times, values) in signals.items():
                    known = new.setdefault(name, ([], []))
                    known[0].extend(times)
                    known[1].extend(values)
        return {**self._about(), "signals": {name: self._packed(*new[name]) for name in sorted(new)}}

    def _about(self) -> dict[str, Any]:
        return {
            "run": self.run.name,
            "version": self.version,
            "origin": self.origin,
            "utc_offset_s": time.localtime(self.origin).tm_gmtoff,
            "last": round((self.last_at or self.origin) - self.origin, 3),
            "over": self.is_over,
            "moments": [
                {"at": round(moment.at - self.origin, 3), "text": masked_output(moment.text), "weight": moment.weight}
                for moment in self.moments
            ],
        }

    def _packed(self, times: Iterable[float], values: Iterable[float]) -> dict[str, str]:
        origin = self.origin
        return {"t": packed([at - origin for at in times]), "v": packed(values)}

    def _since_start(self, times: Iterable[float]) -> list[float]:
        return [round(at - self.origin, 3) for at in times]
