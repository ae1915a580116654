"""What is recorded of ranks: names and keys on disk stand here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from holdfast.vocabulary import Event

CLOCK = "clock.offset"  # of a run's own machine against the clock of where its record lies


@dataclass(frozen=True, slots=True)
class RankJoined:
    """A process says which rank it is. Written by the training process, or by the run that is one rank."""

    KIND: ClassVar[str] = "rank.joined"

    pid: int
    rank: int
    world_size: int | None
    engine: str
    job: str = ""
    restart: int = 0  # how often the engine has started this job again
    host: str = ""

    @classmethod
    def of(cls, event: Event) -> RankJoined:
        return cls.by(event.data, int(event.data.get("pid") or 0))

    @classmethod
    def by(cls, told: Mapping[str, Any], pid: int) -> RankJoined:
        size = told.get("world_size")
        return cls(
            pid,
            int(told["rank"]),
            None if size is None else int(size),
            str(told.get("engine") or ""),
            str(told.get("job") or ""),
            int(told.get("restart") or 0),
            str(told.get("host") or ""),
        )

    def event(self, at: float) -> Event:
        return Event(self.KIND, at, asdict(self))


@dataclass(frozen=True, slots=True)
class RankLeft:
    """The interpreter's end: by itself, or for an exception that nothing handled. None comes of one that was killed."""

    KIND: ClassVar[str] = "rank.left"

    pid: int
    steps: int
    raised: str = ""
    where: str = ""

    @classmethod
    def of(cls, event: Event) -> RankLeft:
        data = event.data
        steps = int(data.get("steps") or 0)
        return cls(int(data.get("pid") or 0), steps, str(data.get("raised") or ""), str(data.get("where") or ""))

    def event(self, at: float) -> Event:
        return Event(self.KIND, at, asdict(self))


@dataclass(frozen=True, slots=True)
class RankEnded:
    """The process's end, seen from outside. `code` is -N for a signal, None where it could not be had."""

    KIND: ClassVar[str] = "rank.ended"

    pid: int
    rank: int
    code: int | None
    killed_for_memory: int | None  # what the kernel counted in its own group; None: it has none of its own

    @classmethod
    def of(cls, event: Event) -> RankEnded:
        data = event.data
        code, killed = data.get("code"), data.get("killed_for_memory")
        return cls(
            int(data.get("pid") or 0),
            int(data.get("rank") or 0),
            None if code is None else int(code),
            None if killed is None else int(killed),
        )

    def event(self, at: float) -> Event:
        return Event(self.KIND, at, asdict(self))
