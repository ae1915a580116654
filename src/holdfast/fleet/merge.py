"""Records of several runs, each one rank, as one: their events about ranks and the pace of each, on one clock."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from operator import attrgetter

from holdfast.fleet.events import RankEnded, RankJoined, RankLeft
from holdfast.fleet.membership import Member
from holdfast.recorded_events import FIRST_TRAINER, Exit
from holdfast.vocabulary import Event, Sample

OF_RANKS = (RankJoined.KIND, RankLeft.KIND, RankEnded.KIND)
# What is read of each rank's record; the rest is the rank's own affair.
EVENTS = ("run.start", "attempt.start", Exit.KIND, FIRST_TRAINER, *OF_RANKS)
PACE = ("own_s", "own_cpu_s", "steps_count", "step_s", "wait_ratio")
SIGNALS = frozenset(f"train.{name}" for name in PACE)
COMPARED_S = 600.0  # the end of each record: 64 hours of them would take half a minute
SILENT_S = 15.0  # a record without an end that is so much older than the others': its machine is lost

_at = attrgetter("at")


def signal_prefix(rank: int) -> str:
    return f"train[{process_of(rank)}]"


def process_of(rank: int) -> int:
    """Ranks of several machines may have the same process ids: here each has a number that no process has."""
    return -1 - rank


def events_of(member: Member, events: Iterable[Event], last_at: float | None = None) -> list[Event]:
    """One rank's story. `last_at`: when its record ends, where that has no ending and others went on."""
    told = list(events)
    process, off_s = process_of(member.joined.rank), member.correction_s
    start = next((event for event in told if event.kind == "run.start"), None)
    found = [replace(member.joined, pid=process).event(start.at if start is not None else member.began)]
    left = next((event for event in reversed(told) if event.kind == RankLeft.KIND), None)
    if left is not None:
        found.append(replace(RankLeft.of(left), pid=process).event(left.at))
    ended = next((event for event in reversed(told) if event.kind == Exit.KIND), None)
    if ended is not None:
        exit = Exit.of(ended)
        code = -exit.signal if exit.signal else exit.code
        own = [one for event in told if event.kind == RankEnded.KIND and (one := RankEnded.of(event)).code == code]
        killed = own[-1].killed_for_memory if own else None
        found.append(RankEnded(process, member.joined.rank, code, killed).event(ended.at))
    elif last_at is not None:
        found.append(RankEnded(process, member.joined.rank, None, None).event(last_at))
    return [replace(event, at=event.at - off_s) for event in found]


def samples_of(member: Member, samples: Iterable[Sample]) -> Iterator[Sample]:
    """Under the rank's own name, on the common clock."""
    off_s = member.correction_s
    names = {f"train.{name}": f"{signal_prefix(member.joined.rank)}.{name}" for name in PACE}
    for one in samples:
        yield Sample(names[one.name], one.value, one.at - off_s, one.reason, one.step)
