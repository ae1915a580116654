"""What a check is given, and the lines it gives back."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

Status = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Line:
    """`bad` ends or cripples any training here; what depends on what the script will do is `warn`."""

    id: str
    status: Status
    text: str
    fix: str = ""


def ok(id: str, text: str) -> Line:
    return Line(id, "ok", text)


def warn(id: str, text: str, fix: str) -> Line:
    return Line(id, "warn", text, fix)


def bad(id: str, text: str, fix: str) -> Line:
    return Line(id, "bad", text, fix)


class Asked:
    """What a check waits for, so that it can be named if it never answers."""

    what = ""

    def __call__(self, what: str) -> None:
        self.what = what


@dataclass(frozen=True, slots=True)
class Here:
    """Where the script would run. Files of the system are read below `root`, as the process `pid` sees them."""

    runs: Path  # where runs are kept; need not exist
    cwd: Path
    python: str  # the Python that would run the script
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    root: Path = Path("/")
    pid: int = field(default_factory=os.getpid)
    uid: int = field(default_factory=os.geteuid)
    job_runs: bool = False  # below `pid`: what it holds is not held by others
    asked: Asked = field(default_factory=Asked)


class Look(Protocol):
    def __call__(self, here: Here) -> Iterator[Line]: ...


class Check(NamedTuple):
    """`unanswered`: how bad it is when the look does not come back, with what to do about it."""

    id: str
    look: Look
    unanswered: Status
    fix: str
    # False: takes time or a process of its own, or judges what is left, which the job's own use makes less: the probes and
    # detectors of a run watch that, with its trend.
    beside_a_run: bool = True
