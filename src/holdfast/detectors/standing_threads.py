"""How a thread stands, by two looks at it some seconds apart: it runs, moves on, or waits, and for what."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from holdfast.inside.library_paths import is_library
from holdfast.stack_snapshots import RUNS, ProcessSnapshot, SourceFrame, ThreadSnapshot, TreeSnapshot, WaitKind

BUSY_RATIO = 0.25  # of the time between the two looks; on a busy machine a thread that never waits gets no more
STARVED_RATIO = 0.05  # of one that would run in both looks, and did not get its turn
# A thread that waits does not run at all, but for answering us (half a millisecond) and for waking up to wait again.
MOVES_RATIO = 0.002
NATIVE_MOVES_RATIO = 0.01  # threads of a runtime wake up from time to time
# Where a process or thread was begun: what lies further out is of whoever began it.
_BEGUN = re.compile(r"multiprocessing[/\\](?:process|spawn|popen_\w+|forkserver)\.py$|[/\\]threading\.py$")
_BEGUN_BY = frozenset({"_bootstrap", "_bootstrap_inner", "_launch", "_main", "spawn_main", "run"})
_DEBUGGER = re.compile(r"[/\\](?:pdb|bdb|code|cmd)\.py$|[/\\](?:debugpy|pydevd|_pydevd_\w+|ipdb|IPython|pudb)[/\\]")


class Standing(Enum):
    BUSY = "runs all the time"
    MOVES = "moves on"
    STOPPED = "is stopped"
    DISK = "waits for a device"  # state D
    LOCK = "waits for a lock"
    SHARED_LOCK = "waits for a lock of several processes"
    TIMED = "waits for a time"
    READS = "waits for input"
    WRITES = "waits to be read"
    FILES = "waits for a file system"
    CHILD = "waits for a process to end"
    UNKNOWN = "waits"


_BY_WAIT = {
    WaitKind.LOCK: Standing.LOCK,
    WaitKind.SHARED_LOCK: Standing.SHARED_LOCK,
    WaitKind.SLEEP: Standing.TIMED,
    WaitKind.READ: Standing.READS,
    WaitKind.POLL: Standing.READS,
    WaitKind.CONNECT: Standing.READS,
    WaitKind.WRITE: Standing.WRITES,
    WaitKind.FILE: Standing.FILES,
    WaitKind.CHILD: Standing.CHILD,
}


@dataclass(frozen=True)
class StandingThread:
    process: ProcessSnapshot
    thread: ThreadSnapshot  # as seen last
    before: ThreadSnapshot | None
    standing: Standing

    @property
    def is_main(self) -> bool:
        return self.thread.tid == self.process.pid

    @property
    def own(self) -> tuple[SourceFrame, ...]:
        """The script's own frames, innermost first, without those of whoever forked it."""
        return own_frames(self.thread.frames)

    @property
    def loop(self) -> SourceFrame | None:
        """The script's innermost frame in both looks that is in a loop which nothing is sure to end."""
        if self.before is None:
            return None
        earlier = {(frame.file, frame.function, frame.loop) for frame in own_frames(self.before.frames)}
        return next((f for f in self.own if f.loop and (f.file, f.function, f.loop) in earlier), None)

    @property
    def loop_moves(self) -> bool:
        """What the loop's condition looks at was something else in the look before: it may just take long."""
        frame = self.loop
        if frame is None or self.before is None or not frame.condition:
            return False
        same = (frame.file, frame.function, frame.loop)
        earlier = [f for f in own_frames(self.before.frames) if (f.file, f.function, f.loop) == same and f.condition]
        return bool(earlier) and all(f.condition != frame.condition for f in earlier)

    @property
    def debugged(self) -> bool:
        return self.process.traced or any(_DEBUGGER.search(frame.file) for frame in self.thread.frames)

    def stands_in(self, pattern: str) -> bool:
        """Whether the innermost frames, up to the script's first one, are in such files."""
        for frame in self.thread.frames:
            if not is_library(frame.file):
                return False
            if re.search(pattern, frame.file):
                return True
        return False


def own_frames(frames: tuple[SourceFrame, ...]) -> tuple[SourceFrame, ...]:
    return tuple(frame for frame in _since_it_began(frames) if not is_library(frame.file))


def _since_it_began(frames: tuple[SourceFrame, ...]) -> Iterator[SourceFrame]:
    for frame in frames:
        if _BEGUN.search(frame.file) and frame.function in _BEGUN_BY:
            return
        yield frame


def standing_threads(before: TreeSnapshot, after: TreeSnapshot) -> list[StandingThread]:
    """Of every process that is there in both looks."""
    seconds = max(after.at - before.at, 0.1)
    found = []
    for process in after.processes:
        earlier = before.process(process.pid)
        known = (
            {thread.tid: thread for thread in earlier.threads} if earlier and earlier.started == process.started else {}
        )
        for thread in process.threads:
            was = known.get(thread.tid)
            found.append(StandingThread(process, thread, was, _standing(was, thread, seconds)))
    return found


def _standing(before: ThreadSnapshot | None, after: ThreadSnapshot, seconds: float) -> Standing:
    if after.state in "Tt":
        return Standing.STOPPED
    if before is None:
        return Standing.MOVES
    ran = (after.cpu_s - before.cpu_s) / seconds
    if ran >= (BUSY_RATIO if before.state != "R" or after.state != "R" else STARVED_RATIO):
        return Standing.BUSY
    asked = not (_without_python(before) or _without_python(after))
    if (
        (asked and RUNS in (before.missing, after.missing))
        or _places(before) != _places(after)
        or _other_ends(before, after)
    ):
        return Standing.MOVES
    if ran >= (MOVES_RATIO if after.frames else NATIVE_MOVES_RATIO):
        return Standing.MOVES
    if before.state == after.state == "D":
        return Standing.DISK
    wait = after.wait or before.wait
    if wait is None:
        return Standing.UNKNOWN
    standing = _BY_WAIT.get(wait.kind, Standing.UNKNOWN)
    timed = wait.timed or (before.wait is not None and before.wait.timed)
    return Standing.TIMED if standing is Standing.LOCK and timed else standing


def _without_python(thread: ThreadSnapshot) -> bool:
    """A library's own: that it ran for a moment in one look, as a store that answers does, says nothing. Its time does."""
    return not thread.frames and not thread.missing


def _places(thread: ThreadSnapshot) -> list[tuple[str, int]]:
    """Where the script itself stands; a library that waits again and again may stand at another line each time."""
    own = [(frame.file, frame.line) for frame in thread.frames if not is_library(frame.file)]
    return own or [(frame.file, frame.line) for frame in thread.frames]


def _other_ends(before: ThreadSnapshot, after: ThreadSnapshot) -> bool:
    """Another file or connection than before."""
    ends = [[end.text for end in one.wait.ends] for one in (before, after) if one.wait is not None and one.wait.ends]
    return len(ends) == 2 and ends[0] != ends[1]
