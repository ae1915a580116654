"""The words every room speaks. Standard library only, no I/O, no clock."""

from __future__ import annotations

import signal
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

UNITS = ("bytes", "bytes_per_s", "s", "ratio", "celsius", "watts", "count", "per_s", "mhz", "percent", "flags")

NOT_WORKING = "not-working:"  # how the key of a decision begins that tells what of Holdfast does not work in a run

JOB_GROUP_PREFIX = "holdfast-job-"  # how the name of a control group begins that Holdfast made for a job


def unit_of(name: str) -> str:
    """The unit a signal's name carries: `host.memory_available_bytes` -> `bytes`."""
    for unit in sorted(UNITS, key=len, reverse=True):
        if name.endswith("_" + unit):
            return unit
    return ""


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading. A missing one is None with the reason, never zero.

    `step` is the training step that it belongs to, where it was read at a step's boundary.
    """

    name: str
    value: float | None
    at: float
    reason: str = ""
    step: int | None = None

    @property
    def unit(self) -> str:
        return unit_of(self.name)


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened once: `run.start`, `script.exit`, `kernel.line`, `finding`, `decision`…"""

    kind: str
    at: float
    data: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of what the script printed. `skipped_bytes` were printed before it and not kept."""

    stream: str
    at: float
    data: bytes
    skipped_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """One line a person can check."""

    text: str
    source: str
    at: float | None = None
    value: float | None = None


@dataclass(frozen=True, slots=True)
class MemoryGrowth:
    """How memory grew with the steps, for whoever weighs a finding about it."""

    per_step_bytes: float
    grown_bytes: float
    held_bytes: float  # at the end
    rises: float  # how often it rose, in jumps of the same size
    bounded: bool  # by a buffer that is being filled
    unexplained: bool  # nothing that was seen inside accounts for it: worth another look
    holder: str = ""  # who keeps it
    in_helpers: bool = False  # by processes beside the one that trains


@dataclass(frozen=True, slots=True)
class Standstill:
    """For whoever decides about a job in which nothing moves."""

    silent_s: float
    proven: bool  # it cannot go on by itself, and that was seen twice
    trained: bool  # it had taken steps before


class Detail(StrEnum):
    """What a detector hands the remedies to fill in: `$holder` in a remedy's text is `Detail.HOLDER` of the finding."""

    HOLDER = "holder"  # who keeps what leaks
    TWICE = "twice"  # a memory limit to try next
    WHERE = "where"  # the place that is full
    THREADS = "threads"  # a process should have
    CORES = "cores"  # there are
    LOWER_RATE = "lower_rate"  # a learning rate to try next
    HIGHER_RATE = "higher_rate"
    OPTIMIZER = "optimizer"  # the script's own, by the name of its class
    ROW = "row"  # of the data set


@dataclass(frozen=True, slots=True)
class Finding:
    """What a detector believes: a cause, how sure it is, and why. `details` fill the texts of its record."""

    cause: str
    confidence: float
    evidence: tuple[Evidence, ...]
    details: Mapping[str, Any] = field(default_factory=dict)
    subject: str = ""  # what it is about, where one cause may be found of several things; told once for each
    headline: str = ""  # in place of the cause's title
    growth: MemoryGrowth | None = None
    standstill: Standstill | None = None
    seconds_left: float | None = None  # until it is full

    @property
    def key(self) -> str:
        """Of the decisions about it."""
        return f"{self.cause}:{self.subject}" if self.subject else self.cause

    def adds_to(self, earlier: Finding) -> bool:
        """The same, and what came of it since."""
        more = len(self.evidence) > len(earlier.evidence)
        return more and self.key == earlier.key and set(earlier.evidence) <= set(self.evidence)


class Policy(StrEnum):
    """How far Holdfast goes in a run."""

    OBSERVE = "observe"  # reads, says nothing, takes over nothing
    ADVISE = "advise"  # and warns
    PROTECT = "protect"  # and acts


class DecisionKind(StrEnum):
    NOTE = "note"  # recorded, and told to nobody
    WARN = "warn"
    EXAMINE = "examine"  # ask the training process what grows in it
    RESTART = "restart"
    STOP = "stop"  # no further attempt
    END = "end"  # a script that does not react to a signal, or stands still


@dataclass(frozen=True, slots=True)
class Remedy:
    title: str
    how: str


# The least confidence of each. Where "confident" begins is fitted: python -m lab.corpus.calibration
LEVELS = {"confident": 0.8, "probable": 0.5, "guess": 0.0}


@dataclass(frozen=True, slots=True)
class Cause:
    """A finding in words: what `why` answers with."""

    id: str
    title: str
    confidence: float
    evidence: tuple[Evidence, ...]
    remedies: tuple[Remedy, ...]
    meaning: str = ""
    sure: str = ""  # what it takes to be certain of it

    @property
    def level(self) -> str:
        """The confidence by name. A guess is never the answer."""
        return next(name for name, least in LEVELS.items() if self.confidence >= least)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    outcome: str
    cause: Cause | None
    also: tuple[Cause, ...] = ()
    summary: str = ""
    noticed: tuple[Cause, ...] = ()  # in a run that goes on or has finished; worst first


class RestartKind(StrEnum):
    """How another attempt may fare better."""

    SMALLER_STEPS = "smaller steps"
    SMALLER_STEPS_ON_GPU = "smaller steps on the GPU"
    EMPTY_MEMORY = "empty memory"  # what leaked is gone with the process
    AGAIN = "again"  # it came from outside
    ONCE = "once"  # unless it has not got beyond the step it failed at before
    ONCE_IF_KILLED = "once if killed"


@dataclass(frozen=True, slots=True)
class RestartAdvice:
    """What a cause says about starting again, and the words for how the attempt ended."""

    kind: RestartKind
    words: str


@dataclass(frozen=True, slots=True)
class Restart:
    """How the next attempt is started."""

    pause_s: float
    k: int | None  # micro-batches a step; None where it begins as the script says
    anew: bool = False  # from the beginning, although there are checkpoints: they cannot be gone on from


@dataclass(frozen=True, slots=True)
class Decision:
    """What policy wants done, as data. `key` is what it is about, so that it is not decided twice."""

    kind: DecisionKind
    key: str
    text: str
    cause: str = ""
    restart: Restart | None = None  # with DecisionKind.RESTART
    per_step_bytes: float = 0.0  # with DecisionKind.EXAMINE: how fast memory grows


class Window:
    """A stretch of the record, as detectors read it: events, samples by name, and what was printed."""

    def __init__(
        self,
        events: Iterable[Event] = (),
        series: Mapping[str, Sequence[Sample]] | None = None,
        output: Mapping[str, bytes] | None = None,
    ) -> None:
        self._events = sorted(events, key=lambda event: event.at)
        self._series = series or {}
        self._output = output or {}

    def events(self, *kinds: str) -> list[Event]:
        return [event for event in self._events if not kinds or event.kind in kinds]

    def event(self, kind: str) -> Event | None:
        """The last event of its kind."""
        return next((event for event in reversed(self._events) if event.kind == kind), None)

    def names(self, prefix: str = "", suffix: str = "") -> list[str]:
        return sorted(name for name in self._series if name.startswith(prefix) and name.endswith(suffix))

    def series(self, name: str, since: float = float("-inf")) -> Sequence[Sample]:
        samples = self._series.get(name, ())
        if since == float("-inf"):
            return samples
        return samples[bisect_left(samples, since, key=lambda sample: sample.at) :]

    def last(self, name: str) -> Sample | None:
        """The newest reading that has a value."""
        return next((sample for sample in reversed(self._series.get(name, ())) if sample.value is not None), None)

    def value(self, name: str) -> float | None:
        sample = self.last(name)
        return None if sample is None else sample.value

    def rise(self, name: str, since: float = float("-inf")) -> float:
        """How far a counter moved, from its last reading before `since` (or its first) to its newest."""
        samples = [sample for sample in self._series.get(name, ()) if sample.value is not None]
        before = [sample for sample in samples if sample.at <= since] or samples[:1]
        return samples[-1].value - before[-1].value if samples else 0.0  # type: ignore[operator]

    def output(self, stream: str) -> bytes:
        return self._output.get(stream, b"")

    def streams(self) -> list[str]:
        return sorted(self._output)
