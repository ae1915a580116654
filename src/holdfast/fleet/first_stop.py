"""Which rank stopped first, and how. The ranks that lost it complain, and the engine ends the rest: those are echoes."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from holdfast.fleet.stories import READS, RankStory, stories
from holdfast.recorded_events import Exit, GuardAct, RecordedDecision
from holdfast.vocabulary import DecisionKind, Event, Evidence, Window
from holdfast.windows import Reads

# What a rank raises that has lost another one, or has waited for it in vain.
LOST = re.compile(
    r"(?i)connection (?:was )?(?:closed|reset|refused|aborted)|broken ?pipe|socket ?(?:timeout|error|closed)|read error|"
    r"\bgloo\b|\bnccl|DistBackendError|DistNetworkError|DistStoreError|TCPStore|recvValue|"
    r"timed? ?out (?:waiting|after)|collective|rendezvous|remote (?:worker|process)|"
    r"UnavailableError|ActorDied|another (?:rank|worker|replica)|peer"
)
IN_VAIN = re.compile(r"(?i)time[d ]{0,2}out")
BY_THE_ENGINE = frozenset(  # how it ends those that are left, or warns all of them
    {signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2}
)
AT_ONCE_S = 0.01
MOST_ECHOES = 4
RANKS = "ranks"  # the source of evidence that compares them
ABORTS_AFTER_S = 2.0  # gloo throws where nothing catches it when a peer is lost, and the rank aborts
# To stop, as a whole: by somebody, by Holdfast, for memory or since it stood still.
ASKED = ("signal.received", "key.interrupt", GuardAct.STOPPED, RecordedDecision.KIND)
FIRST_READS = READS | Reads(events=(Exit.KIND, *ASKED))


class Stop(Enum):
    KILLED = "killed"
    KILLED_FOR_MEMORY = "killed for memory"
    CRASHED = "crashed"
    RAISED = "raised"
    LEFT = "left with an exit code"
    FINISHED = "finished before the others"
    MISSING = "did not come"
    LOST = "its record breaks off"


ECHOES_ALONE = (Stop.FINISHED, Stop.MISSING)  # nothing but echoes is printed then


@dataclass(frozen=True, slots=True)
class FirstStop:
    story: RankStory
    how: Stop
    others: tuple[RankStory, ...]

    @property
    def rank(self) -> int:
        return self.story.rank

    @property
    def told_by(self) -> int:
        """The rank whose record tells how the job failed: one that ended by itself knows nothing of it."""
        failed = [one.rank for one in self.others if one.stopped_at is not None and not one.finished]
        return failed[0] if failed and self.how in ECHOES_ALONE else self.rank

    def evidence(self) -> tuple[Evidence, ...]:
        """Who was first, then what the others did."""
        story = self.story
        after = f" after step {story.steps}" if story.steps is not None else ""
        at = min((one.stopped_at for one in (story, *self.others) if one.stopped_at is not None), default=None)
        if self.how is Stop.MISSING:
            first = f"{story.name} did not come to where the others waited{after}"
        else:
            first = f"{story.name} stopped first: it {story.how()}{after}"
        return (Evidence(first, RANKS, at, float(story.rank)), *self._echoes())

    def _echoes(self) -> list[Evidence]:
        told = []
        first_at = self.story.stopped_at
        for other in self.others:
            if other.stopped_at is None:
                continue
            later = "" if first_at is None else _later(other.stopped_at - first_at)
            because = " for the loss of it" if lost_another(other) or ended_by_the_engine(other) else ""
            text = f"rank {other.rank} followed{later}{because}: it {other.how()}"
            told.append(Evidence(text, RANKS, other.stopped_at, float(other.rank)))
        left_out = len(told) - MOST_ECHOES
        return [
            *told[:MOST_ECHOES],
            *([Evidence(f"and {left_out} more ranks after it", RANKS)] if left_out > 0 else []),
        ]


def first_stop(window: Window) -> FirstStop | None:
    """None for a job that trains alone, that runs or has finished, or of which nothing is known that tells."""
    end = window.event(Exit.KIND)
    if end is not None and Exit.of(end).code == 0:
        return None
    first = first_of(stories(window))
    moments = [one.stopped_at for one in (first.story, *first.others) if one.stopped_at is not None] if first else []
    asked = [event for event in window.events(*ASKED) if moments and event.at <= min(moments) and _ends_all(event)]
    return None if asked else first  # then all were ended, in whatever order


def _ends_all(event: Event) -> bool:
    if event.kind == GuardAct.STOPPED:
        return GuardAct.of(event).whole_job
    return event.kind != RecordedDecision.KIND or RecordedDecision.of(event).decision == DecisionKind.END


def first_of(told: Sequence[RankStory]) -> FirstStop | None:
    stopped = sorted((one for one in told if one.stopped_at is not None), key=_by_itself_at)
    failed = [one for one in stopped if not one.finished]
    if not failed or any(one.unseen for one in stopped):
        return None  # of ranks that live for less than a second the engine knows more
    own = [one for one in failed if not lost_another(one) and not ended_by_the_engine(one)]
    lost = [one for one in failed if lost_another(one)]
    first = own[0] if own else None
    finished = [one for one in stopped if one.finished]
    if first is None and finished and lost and _stopped_at(finished[0]) <= _stopped_at(lost[0]):
        return _told(finished[0], Stop.FINISHED, told)
    if first is None:
        silent = [one for one in told if not one.finished and not lost_another(one)]
        waited = lost and all(IN_VAIN.search(one.raised) for one in lost[:1])
        return _told(silent[0], Stop.MISSING, told) if waited and len(silent) == 1 else None
    return _told(first, _how(first), told)


def _told(story: RankStory, how: Stop, told: Sequence[RankStory]) -> FirstStop:
    others = sorted((one for one in told if one is not story), key=lambda one: one.stopped_at or float("inf"))
    return FirstStop(story, how, tuple(others))


def _how(story: RankStory) -> Stop:
    if story.killed_for_memory:
        return Stop.KILLED_FOR_MEMORY
    if story.signal == signal.SIGKILL:
        return Stop.KILLED
    if story.signal:
        return Stop.CRASHED
    if story.raised:
        return Stop.RAISED
    return Stop.LOST if story.alone and story.ended is not None and story.ended.code is None else Stop.LEFT


def lost_another(story: RankStory) -> bool:
    return bool(story.raised and LOST.search(story.raised))


def ended_by_the_engine(story: RankStory) -> bool:
    """By a signal, or as Ray ends its workers. What one of those raised is caught by Ray, and printed."""
    code = story.ended.code if story.ended is not None else None
    return story.signal in BY_THE_ENGINE or (story.joined.engine == "ray" and code in (0, 1) and not story.raised)


def _by_itself_at(story: RankStory) -> float:
    return _stopped_at(story) + (ABORTS_AFTER_S if story.signal == signal.SIGABRT else 0.0)


def _stopped_at(story: RankStory) -> float:
    return story.stopped_at if story.stopped_at is not None else float("inf")


def _later(seconds: float) -> str:
    """The connections of a process that was killed are closed before its end can be seen."""
    if seconds < AT_ONCE_S:
        return " at once"
    return f" {seconds * 1000:.0f} ms later" if seconds < 1 else f" {seconds:.1f} s later"
