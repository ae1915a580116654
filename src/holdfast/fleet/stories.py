"""How each rank fared, by the events of one window: of one run with many ranks, or of many runs put together."""

from __future__ import annotations

import re
import signal
from dataclasses import dataclass

from holdfast.fleet.events import RankEnded, RankJoined, RankLeft
from holdfast.recorded_events import FIRST_TRAINER
from holdfast.vocabulary import Window, signal_name
from holdfast.windows import Reads

READS = Reads(
    latest=("train*.steps_count",),
    events=(FIRST_TRAINER, RankJoined.KIND, RankLeft.KIND, RankEnded.KIND),
)

BUILT_FROM = re.compile(r"\[/[^\]]*\.\w+:\d+\] ")  # the source file of a library's that says it
MOST_WORDS = 110


@dataclass(frozen=True, slots=True)
class RankStory:
    joined: RankJoined
    joined_at: float
    steps: int | None  # finished; None: it was not seen to train
    stepped_at: float | None
    left: RankLeft | None = None
    left_at: float | None = None
    ended: RankEnded | None = None
    ended_at: float | None = None

    @property
    def rank(self) -> int:
        return self.joined.rank

    @property
    def stopped_at(self) -> float | None:
        """When it was lost to the others. An exception is told before the connections are closed."""
        moments = [at for at in (self.left_at, self.ended_at) if at is not None]
        return min(moments, default=None)

    @property
    def signal(self) -> int:
        code = self.ended.code if self.ended is not None else None
        return -code if code is not None and code < 0 else 0

    @property
    def raised(self) -> str:
        return self.left.raised if self.left is not None else ""

    @property
    def finished(self) -> bool:
        """By itself, and without an error."""
        if self.ended is not None and self.ended.code is not None:
            return self.ended.code == 0
        return self.left is not None and not self.left.raised

    @property
    def unseen(self) -> bool:
        """It was over before anybody looked, and said nothing."""
        return not self.alone and self.left is None and self.ended is not None and self.ended.code is None

    @property
    def alone(self) -> bool:
        """It has a run of its own, so that what is printed there is its own, too."""
        return self.joined.pid < 0

    @property
    def killed_for_memory(self) -> bool:
        return self.signal == signal.SIGKILL and bool(self.ended and self.ended.killed_for_memory)

    @property
    def name(self) -> str:
        where = f"on {self.joined.host}" if self.joined.host else ""
        process = f"process {self.joined.pid}" if self.joined.pid > 0 else ""
        about = " ".join(part for part in (process, where) if part)
        return f"rank {self.rank} ({about})" if about else f"rank {self.rank}"

    def how(self) -> str:
        if self.signal:
            return f"was ended by {signal_name(self.signal)}"
        if self.raised:
            words = BUILT_FROM.sub("", self.raised.splitlines()[0])
            return f"raised {words if len(words) <= MOST_WORDS else words[:MOST_WORDS] + '…'}"
        code = self.ended.code if self.ended is not None else None
        if code:
            return f"ended with exit code {code}"
        if self.finished:
            return "ended by itself"
        if self.alone and self.ended is not None:
            return "told nothing any more"
        return "ended, and how was not seen" if self.stopped_at is not None else "is running"


def starts(window: Window) -> list[int]:
    """How often the engine had started the job again, for each start that is recorded."""
    return sorted({RankJoined.of(event).restart for event in window.events(RankJoined.KIND)})


def stories(window: Window, start: int | None = None) -> list[RankStory]:
    """Of one start of the job, the latest where none is named, by rank; empty for a process that trains alone."""
    joined = [(RankJoined.of(event), event.at) for event in window.events(RankJoined.KIND)]
    engines = {one.engine for one, _ in joined}
    if "torchrun" in engines:  # within a job of Slurm's: its tasks are the agents, one a machine
        joined = [(one, at) for one, at in joined if one.engine in ("torchrun", "torch")]
    latest = max((one.restart for one, _ in joined), default=0) if start is None else start
    last_of_each = {one.rank: (one, at) for one, at in joined if one.restart == latest}
    left = {RankLeft.of(event).pid: (RankLeft.of(event), event.at) for event in window.events(RankLeft.KIND)}
    ended = {RankEnded.of(event).pid: (RankEnded.of(event), event.at) for event in window.events(RankEnded.KIND)}
    steps = _steps(window)
    found = []
    for _, (one, at) in sorted(last_of_each.items()):
        number, stepped_at = steps.get(one.pid, (None, None))
        found.append(
            RankStory(one, at, number, stepped_at, *left.get(one.pid, (None, None)), *ended.get(one.pid, (None, None)))
        )
    return found if len(found) > 1 else []


def _steps(window: Window) -> dict[int, tuple[int, float]]:
    """By process."""
    found = {}
    for pid, prefix in signals_of(window).items():
        sample = window.last(f"{prefix}.steps_count")
        if sample is not None and sample.value is not None:
            found[pid] = (int(sample.value), sample.at)
    return found


def signals_of(window: Window) -> dict[int, str]:
    """How the names of its signals begin, by process."""
    first = window.event(FIRST_TRAINER)
    found = {} if first is None else {int(first.data["pid"]): "train"}
    for name in window.names("train[", "].steps_count"):
        prefix = name.removesuffix(".steps_count")
        found[int(prefix.removeprefix("train[").removesuffix("]"))] = prefix
    return found
