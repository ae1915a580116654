"""Where every thread of a job stands at one moment: its Python stack, and what it waits for in the kernel.

Taken by `supervisor/tree_stacks`, judged by `detectors/`, kept in the journal and in the run's folder, shown by `holdfast stacks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, ClassVar

from holdfast.stack_dumps import Frame
from holdfast.vocabulary import Event


@dataclass(frozen=True, slots=True)
class SourceFrame(Frame):
    """A frame with what its source says, where it is the script's own."""

    loop: str = ""  # the head of the loop around it, where nothing is sure to end that one
    holds: tuple[str, ...] = ()  # the locks of the `with` statements around it, as written
    condition: tuple[str, ...] = ()  # NAME=NUMBER for what the loop's condition looks at, as far as it is known


class WaitKind(StrEnum):
    """What a thread that does not run waits for."""

    LOCK = "lock"  # that only a thread of its own process can release
    SHARED_LOCK = "shared lock"  # that another process may release
    SLEEP = "sleep"
    READ = "read"
    WRITE = "write"
    POLL = "poll"  # until one of several descriptors is ready
    CONNECT = "connect"
    FILE = "file"  # opening, looking up, syncing: a call that a file system answers
    CHILD = "child"  # the end of a process
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class End:
    """One descriptor that a thread waits on. `path` is empty where it is no file."""

    fd: int
    what: str  # "file", "pipe", "socket", "terminal" or "other"
    text: str  # its path, the addresses of a socket, or the kernel's name for it
    filesystem: str = ""  # of a file: type and source of its mount
    holders: tuple[int, ...] | None = None  # of a pipe: who holds its other end; None: not known
    held_by_itself: bool = False  # of a pipe: the process that waits holds the other end, too


@dataclass(frozen=True, slots=True)
class Wait:
    kind: WaitKind
    timed: bool | None = None  # it ends by itself after a while; None: not known
    ends: tuple[End, ...] = ()


RUNS = "it runs, and a thread that runs Python is not asked"  # why a thread's frames are missing, most often


@dataclass(frozen=True, slots=True)
class ThreadSnapshot:
    """`frames` innermost first; empty where it runs no Python. `missing`: why they could not be had."""

    tid: int
    name: str
    state: str  # the kernel's letter: R, S, D, T, t, Z
    cpu_s: float
    frames: tuple[SourceFrame, ...] = ()
    missing: str = ""
    wchan: str = ""
    syscall: str = ""  # by name, "running", or empty where it cannot be read
    wait: Wait | None = None


@dataclass(frozen=True, slots=True)
class ProcessSnapshot:
    pid: int
    parent: int
    name: str
    command: str
    state: str
    cpu_s: float
    started: int  # in clock ticks since boot: a pid alone may be used again
    threads: tuple[ThreadSnapshot, ...]
    missing: str = ""  # why there are no stacks, or not all of them
    gil_held: bool = False  # native code held the interpreter for as long as an answer was waited for
    traced: bool = False  # by a debugger
    rank: int | None = None  # of several that train together

    @property
    def main(self) -> ThreadSnapshot | None:
        return next((thread for thread in self.threads if thread.tid == self.pid), None)


@dataclass(frozen=True, slots=True)
class TreeSnapshot:
    at: float
    took_s: float
    processes: tuple[ProcessSnapshot, ...]
    missing: str = ""

    def process(self, pid: int) -> ProcessSnapshot | None:
        return next((process for process in self.processes if process.pid == pid), None)

    def with_ranks(self, ranks: Mapping[int, int]) -> TreeSnapshot:
        """`ranks`: by process."""
        return replace(self, processes=tuple(replace(one, rank=ranks.get(one.pid)) for one in self.processes))

    def as_data(self) -> dict[str, Any]:
        """For JSON; `of_data` reads it back. Names as in `holdfast stacks --json`."""
        return asdict(self)


def of_data(data: Mapping[str, Any]) -> TreeSnapshot:
    processes = tuple(
        ProcessSnapshot(**{**process, "threads": tuple(_thread(thread) for thread in process["threads"])})
        for process in data["processes"]
    )
    return TreeSnapshot(**{**data, "processes": processes})


def _thread(data: Mapping[str, Any]) -> ThreadSnapshot:
    frames = tuple(
        SourceFrame(**frame | {name: tuple(frame.get(name) or ()) for name in ("holds", "condition")})
        for frame in data["frames"]
    )
    return ThreadSnapshot(**{**data, "frames": frames, "wait": _wait(data.get("wait"))})


def _wait(data: Mapping[str, Any] | None) -> Wait | None:
    return (
        None if data is None else Wait(WaitKind(data["kind"]), data["timed"], tuple(_end(end) for end in data["ends"]))
    )


def _end(data: Mapping[str, Any]) -> End:
    holders = data.get("holders")
    return replace(End(**data), holders=None if holders is None else tuple(holders))


@dataclass(frozen=True, slots=True)
class RecordedStacks:
    """Stacks that were taken because nothing moved, with what was known of the silence then."""

    KIND: ClassVar[str] = "hang.stacks"

    snapshot: TreeSnapshot
    silent_s: float
    soon_s: float  # how long a silence must last that cannot end
    late_s: float  # and one that may yet
    phase: str
    trainers: Mapping[int, int]  # processes that have taken a step, with their number of steps

    def event(self, at: float) -> Event:
        about = {"silent_s": self.silent_s, "soon_s": self.soon_s, "late_s": self.late_s, "phase": self.phase}
        trainers = {str(pid): steps for pid, steps in self.trainers.items()}
        return Event(self.KIND, at, {**about, "trainers": trainers, "snapshot": self.snapshot.as_data()})

    @classmethod
    def of(cls, event: Event) -> RecordedStacks:
        data = event.data
        trainers = {int(pid): int(steps) for pid, steps in (data.get("trainers") or {}).items()}
        silent_s, soon_s, late_s = (float(data[name]) for name in ("silent_s", "soon_s", "late_s"))
        return cls(of_data(data["snapshot"]), silent_s, soon_s, late_s, str(data.get("phase", "")), trainers)
