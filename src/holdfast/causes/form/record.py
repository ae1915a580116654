"""The form of a cause: all that is known of it, in one place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.causes.form.recipe import Recipe
from holdfast.causes.form.rule import Rule
from holdfast.vocabulary import RestartAdvice


@dataclass(frozen=True, slots=True)
class Room:
    """Ruled out where a tenth of `whole` was always left. `[*]` in a signal's name stands for each of its kind."""

    left: str
    whole: str
    what: str


@dataclass(frozen=True, slots=True)
class Unmoved:
    """Ruled out where none of the counters that were read moved."""

    counters: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Below:
    """Ruled out where the highest reading stayed a tenth below its limit."""

    used: str
    limit: str
    what: str


@dataclass(frozen=True, slots=True)
class NotSeen:
    """Ruled out where no such event was recorded."""

    event: str
    text: str


@dataclass(frozen=True, slots=True)
class Xids:
    """Numbers of the NVIDIA driver's messages in the kernel's log that mean the cause."""

    numbers: tuple[int, ...]
    confidence: float
    text: str


@dataclass(frozen=True, slots=True)
class CauseRecord:
    id: str
    family: str
    title: str
    meaning: str  # two sentences
    sure: str  # what it takes to be certain of it
    recipes: tuple[Recipe, ...] = ()
    # Relations to other causes, by their ids.
    explains: tuple[str, ...] = ()  # endings it leads to; alone it ends no run
    says_more_than: tuple[str, ...] = ()  # both may be seen of one event; this one says more, and stands by itself
    symptom: bool = False  # of any more particular cause
    echo: bool = False  # what other ranks see when one is gone: true, and not the reason
    # What it does to a run.
    restart: RestartAdvice | None = None  # None: it would come again
    asked_to_stop: bool = False  # nothing was wrong with the run
    slows: bool = False  # a run, and ends none
    goes_on: bool = False  # training may go on after it, or end as if it were done
    ran_out: str = ""  # "host" or "gpu": whose memory it was
    # How its texts are taken.
    message_in_title: bool = False  # an exception's first line names the sizes, types, names or files
    in_passing: bool = False  # healthy runs say such words too
    of_the_system: bool = False  # the kernel or the scheduler says it, also below an exception
    of_the_installation: bool = False  # a run that trains all the same was not kept from it
    exceptions: tuple[Rule, ...] = ()
    lines: tuple[Rule, ...] = ()
    last_frames: tuple[tuple[float, str], ...] = ()  # of a traceback whose last line is missing
    signals: Mapping[int, float] = field(default_factory=dict)  # that end a process this way, and how surely
    xids: tuple[Xids, ...] = ()
    ruled_out: tuple[Room | Unmoved | Below | NotSeen, ...] = ()
