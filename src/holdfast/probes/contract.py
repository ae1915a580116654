"""What a probe is given, what it gives back, and how it says that it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from holdfast.vocabulary import Event, Sample

Reading = Sample | Event


@dataclass(frozen=True)
class Scope:
    """The job to watch: every descendant of the watcher, which also reaps the script's orphans.

    `directories` are where the job runs, where its state is kept and where temporary files go.
    """

    script_pid: int
    watcher_pid: int
    directories: tuple[Path, ...]
    root: Path = Path("/")


class Missing(Exception):
    """A probe cannot work here; the message says why in one line. `tell`: the user would expect it to, so they are told."""

    def __init__(self, reason: str, tell: bool = False) -> None:
        super().__init__(reason)
        self.tell = tell


class Probe(Protocol):
    """Reads one kind of thing. `every_s` 0 is every tick.

    Optional beside these: `signals` (names to report as missing before the first reading), `closing(now)` (a
    different look right after the script died) and `close()`.
    """

    name: str
    every_s: float

    def __init__(self, scope: Scope) -> None: ...

    def read(self, now: float) -> list[Sample | Event]: ...
