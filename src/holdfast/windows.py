"""What is read of a run's record, declared beside whoever reads it, and the window that is built from these declarations.

Live watching, judging an attempt and `why` take the readings into the same WindowBuilder, so that a detector sees the same
in each. What it has not declared it cannot read: its window raises, wherever it is called.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, reduce
from math import isnan
from operator import or_
from typing import Concatenate, Generic, ParamSpec, TypeVar

from holdfast.vocabulary import Event, Output, Sample, Window

LATEST = 120  # samples of a signal: two minutes when quiet, six seconds when tight
FIRST_EVENTS, LATEST_EVENTS = 50, 450  # of a kind
OUTPUT_BYTES = 256 << 10  # the end of each stream, at least
# Recorded once, and valid for every attempt.
LASTING = ("run.start", "machine", "cgroup.found", "probe.missing", "aftermath")

P = ParamSpec("P")
R = TypeVar("R")


class Depth(Enum):
    """How far back a signal is read."""

    LATEST = "latest"  # its last samples
    COURSE = "course"  # the whole attempt: its last samples, before them its extremes and an even choice


@dataclass(frozen=True)
class Reads:
    """A declaration. `*` in the name of a signal stands for each of its kind, as in `gpu*.memory_used_bytes`."""

    latest: tuple[str, ...] = ()
    course: tuple[str, ...] = ()
    events: tuple[str, ...] = ()
    output: bool = False

    def __or__(self, other: Reads) -> Reads:
        return Reads(
            _each_once(self.latest, other.latest),
            _each_once(self.course, other.course),
            _each_once(self.events, other.events),
            self.output or other.output,
        )

    def __contains__(self, signal: object) -> bool:
        return isinstance(signal, str) and self.depth(signal) is not None

    def depth(self, signal: str) -> Depth | None:
        """None where it is not read."""
        known = self._depths
        if signal not in known:
            known[signal] = (
                Depth.COURSE
                if any(_stands_for(name, signal) for name in self.course)
                else Depth.LATEST
                if any(_stands_for(name, signal) for name in self.latest)
                else None
            )
        return known[signal]

    @cached_property
    def kinds(self) -> frozenset[str]:
        return frozenset(self.events)

    @cached_property
    def _depths(self) -> dict[str, Depth | None]:
        return {}


NOTHING = Reads()


def all_of(declarations: Iterable[Reads]) -> Reads:
    return reduce(or_, declarations, NOTHING)


def _each_once(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*one, *other)))


def _stands_for(pattern: str, name: str) -> bool:
    before, star, after = pattern.partition("*")
    if not star:
        return pattern == name
    return name.startswith(before) and name.endswith(after) and len(name) >= len(before) + len(after)


class UndeclaredRead(LookupError):
    """A reader asked for something that its declaration does not name."""


@dataclass(frozen=True)
class Reader(Generic[P, R]):
    """A function of a window that sees what it has declared and nothing else."""

    function: Callable[Concatenate[Window, P], R]
    reads: Reads

    def __call__(self, window: Window, *arguments: P.args, **options: P.kwargs) -> R:
        return self.function(DeclaredWindow(window, self.reads), *arguments, **options)


def reads(
    *others: Reads,
    latest: Sequence[str] = (),
    course: Sequence[str] = (),
    events: Sequence[str] = (),
    output: bool = False,
) -> Callable[[Callable[Concatenate[Window, P], R]], Reader[P, R]]:
    """Declares what the function below it reads; `others` are the declarations of what it calls."""
    declared = all_of((*others, Reads(tuple(latest), tuple(course), tuple(events), output)))
    return lambda function: Reader(function, declared)


class DeclaredWindow(Window):
    """A window as one reader may see it."""

    def __init__(self, window: Window, declared: Reads) -> None:
        self._seen, self._declared = window, declared

    def events(self, *kinds: str) -> list[Event]:
        if not kinds or not self._declared.kinds.issuperset(kinds):
            raise UndeclaredRead(f"events {', '.join(kinds) or 'of every kind'}")
        return self._seen.events(*kinds)

    def event(self, kind: str) -> Event | None:
        if kind not in self._declared.kinds:
            raise UndeclaredRead(f"event {kind}")
        return self._seen.event(kind)

    def names(self, prefix: str = "", suffix: str = "") -> list[str]:
        self._depth(f"{prefix}*{suffix}")
        return self._seen.names(prefix, suffix)

    def series(self, name: str, since: float = float("-inf")) -> Sequence[Sample]:
        samples = self._seen.series(name, since)
        return samples if self._depth(name) is Depth.COURSE else samples[-LATEST:]

    def last(self, name: str) -> Sample | None:
        self._depth(name)
        return self._seen.last(name)

    def rise(self, name: str, since: float = float("-inf")) -> float:
        self._depth(name)
        return self._seen.rise(name, since)

    def output(self, stream: str) -> bytes:
        self._may_read_output()
        return self._seen.output(stream)

    def streams(self) -> list[str]:
        self._may_read_output()
        return self._seen.streams()

    def _depth(self, name: str) -> Depth:
        depth = self._declared.depth(name)
        if depth is None:
            raise UndeclaredRead(f"signal {name}")
        return depth

    def _may_read_output(self) -> None:
        if not self._declared.output:
            raise UndeclaredRead("what was printed")


class WindowBuilder:
    """Keeps of one attempt's readings, in bounded memory, what the declarations ask for."""

    def __init__(self, declared: Reads) -> None:
        self._declared = declared
        self._signals: dict[str, _Latest | _Course | None] = {}
        self._events: dict[str, _Events] = {}
        self._output: dict[str, bytearray] = {}

    def take(self, readings: Iterable[Sample | Event | Output]) -> None:
        for reading in readings:
            if isinstance(reading, Sample):
                kept = self._signals.get(reading.name) or self._new_signal(reading.name)
                if kept is not None:
                    kept.add(reading)
            elif isinstance(reading, Event):
                if reading.kind in self._declared.kinds or reading.kind in LASTING:
                    self._events.setdefault(reading.kind, _Events()).add(reading)
            elif self._declared.output:
                self._print(reading.stream, reading.data)

    def _new_signal(self, name: str) -> _Latest | _Course | None:
        if name not in self._signals:
            depth = self._declared.depth(name)
            self._signals[name] = None if depth is None else _Course() if depth is Depth.COURSE else _Latest()
        return self._signals[name]

    def _print(self, stream: str, data: bytes) -> None:
        tail = self._output.setdefault(stream, bytearray())
        tail += data
        if len(tail) > 2 * OUTPUT_BYTES:
            del tail[:-OUTPUT_BYTES]

    def begin_again(self) -> None:
        """For the next attempt."""
        self._signals, self._output = {}, {}
        self._events = {kind: kept for kind, kept in self._events.items() if kind in LASTING}

    def window(self, declared: Reads | None = None) -> Window:
        """For the readers of these declarations; for all where none are given."""
        wanted = declared or self._declared
        events = [event for kind, kept in self._events.items() if kind in wanted.kinds for event in kept.events()]
        series = {
            name: kept.samples()
            for name, kept in self._signals.items()
            if kept is not None and (wanted is self._declared or wanted.depth(name) is not None)
        }
        output = {name: bytes(tail[-OUTPUT_BYTES:]) for name, tail in self._output.items()} if wanted.output else {}
        return Window(events, series, output)


class _Events:
    """The first and the latest of one kind."""

    def __init__(self) -> None:
        self._first: list[Event] = []
        self._latest: deque[Event] = deque(maxlen=LATEST_EVENTS)

    def add(self, event: Event) -> None:
        if len(self._first) < FIRST_EVENTS:
            self._first.append(event)
        else:
            self._latest.append(event)

    def events(self) -> list[Event]:
        return [*self._first, *self._latest]


class _Latest:
    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=LATEST)

    def add(self, sample: Sample) -> None:
        self._samples.append(sample)

    def samples(self) -> list[Sample]:
        return list(self._samples)


class _Course:
    """The latest samples in full; older ones thinned evenly over the whole attempt, more as it gets longer.

    The lowest and the highest of those that passed are kept too: "never above" has to be true of all of them.
    """

    def __init__(self) -> None:
        self._latest: deque[Sample] = deque()
        self._older: list[Sample] = []
        self._extremes: tuple[Sample, Sample] | None = None
        self._every = 1
        self._passed = 0

    def add(self, sample: Sample) -> None:
        self._latest.append(sample)
        if len(self._latest) <= LATEST:
            return
        passing = self._latest.popleft()
        self._compare(passing)
        if self._passed % self._every == 0:
            self._older.append(passing)
        self._passed += 1
        if len(self._older) > LATEST:
            self._older = self._older[::2]
            self._every *= 2

    def _compare(self, passing: Sample) -> None:
        if passing.value is None or isnan(passing.value):
            return
        lowest, highest = self._extremes or (passing, passing)
        if passing.value < (lowest.value or 0.0):
            lowest = passing
        if passing.value > (highest.value or 0.0):
            highest = passing
        self._extremes = (lowest, highest)

    def samples(self) -> list[Sample]:
        kept = [*self._older, *self._latest]
        for extreme in self._extremes or ():
            place = bisect_right(kept, _moment(extreme), key=_moment)
            if not place or kept[place - 1] is not extreme:
                kept.insert(place, extreme)
        return kept


def _moment(sample: Sample) -> tuple[float, int]:
    return sample.at, sample.step or 0
