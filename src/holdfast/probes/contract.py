"""What a probe is given, what it gives back, and how it says that it cannot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from holdfast.vocabulary import Event, Sample

Reading = Sample | Event


@dataclass(frozen=True)
class Scope:
    """The job to look at: every descendant of the watcher, which reaps the script's orphans.

    The directories are where the job runs, where its state is kept and where temporary files go.
    """

    script_pid: int
    watcher_pid: int
    directories: tuple[Path, ...]
    root: Path = Path("/")


class Missing(Exception):
    """This cannot be had here; the message says why in one line. `tell`: the user would expect it, so it is said."""

    def __init__(self, reason: str, tell: bool = False) -> None:
        super().__init__(reason)
        self.tell = tell


class Probe(Protocol):
    """One thing to look at. `every_s` 0 is every tick.

    Optional beside these: `signals` (names to report as missing before the first reading), `closing(now)` (a
    different look right after the script died) and `close()`.
    """

    name: str
    every_s: float

    def __init__(self, scope: Scope) -> None: ...

    def read(self, now: float) -> list[Sample | Event]: ...
