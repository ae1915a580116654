"""Nothing moves: no step, no output, no bytes; and where every thread stands says why.

How long the silence must last depends on what is seen: one that cannot end is told soon, one that may just take long is told late
(`supervisor/standstill.py` says what is soon and late for this job, by what it has seen of it).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import inf

from holdfast.detectors.hang_classes import classify
from holdfast.detectors.hang_verdict import Verdict
from holdfast.recorded_events import Exit
from holdfast.stack_snapshots import RecordedStacks
from holdfast.units import duration
from holdfast.vocabulary import Evidence, Finding, Sample, Standstill, Window
from holdfast.windows import reads

ASKED_WITHIN_S = 5.0  # of a reading


@dataclass(frozen=True, slots=True)
class Thresholds:
    apart_s: tuple[float, float] = (1.0, 5.0)  # two looks that belong together
    pairs: int = 2  # that are looked at
    busy_before_training_s: float = 600.0  # preparing data may take long, and look like a loop
    ended_soon_s: float = 45.0  # after the silence: whoever ended the run ended it for that
    disk_bytes_per_s: float = 1 << 20
    gone_s: float = 20.0  # a process that ended so long before or after the silence began


READS = reads(
    latest=["train.steps_count", "disk.read_bytes", "disk.written_bytes"],
    course=["job.silent_s"],
    events=[RecordedStacks.KIND, Exit.KIND, "process.gone", "guard.stopped", "signal.received", "key.interrupt"],
)


@READS
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    silent = window.last("job.silent_s")
    return _found(window, silent, thresholds) if silent is not None else None


@READS
def find_ending(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    """Of a run that was ended while it stood still, or that stands still now."""
    taken = window.event(RecordedStacks.KIND)
    ended = window.event(Exit.KIND)
    if taken is None or window.event("guard.stopped") is not None:
        return None
    silent = [s for s in window.series("job.silent_s") if s.value and s.value >= RecordedStacks.of(taken).soon_s]
    steps = window.last("train.steps_count")
    if ended is None:
        return _found(window, window.last("job.silent_s"), thresholds)
    if not silent or Exit.of(ended).code == 0:
        return None
    asked = _asked(window, silent)
    if asked is not None and (steps is None or steps.at <= asked[0] + thresholds.ended_soon_s):
        return _found(
            window, asked[1], thresholds, until=asked[0]
        )  # what a signal interrupts may still finish its step
    if ended.at - silent[-1].at > thresholds.ended_soon_s or (steps is not None and steps.at > silent[-1].at):
        return None  # it went on by itself
    return _found(window, silent[-1], thresholds, until=ended.at)


def _asked(window: Window, silent: Sequence[Sample]) -> tuple[float, Sample] | None:
    """When it was first asked to end while it stood still, and how long it had: a job that hangs may take minutes to end."""
    for event in window.events("signal.received", "key.interrupt"):
        during = [
            s
            for s in silent
            if s.at - (s.value or 0.0) < event.at <= s.at + ASKED_WITHIN_S and s.at <= event.at + ASKED_WITHIN_S
        ]
        if during:
            return event.at, during[-1]
    return None


def _found(window: Window, silent: Sample | None, thresholds: Thresholds, until: float = inf) -> Finding | None:
    """`until`: the end of the run; a look while it was being ended shows nothing."""
    if silent is None or not silent.value:
        return None
    began = silent.at - silent.value
    pairs = _pairs(window, began, until, thresholds)
    judged = [(_judged(window, began, pair, thresholds), pair[1]) for pair in pairs]
    if until < inf:
        judged = [one for one in judged if one[0] is not None]
    if not judged or judged[0][0] is None:
        return None
    # A look at a moment when a busy thread did not get its turn tells less than the one before.
    certain = [(verdict, stacks) for verdict, stacks in judged if verdict is not None and verdict.soon]
    verdict, second = (certain or judged)[0]
    if verdict is None or silent.value < _needed_s(verdict, second, thresholds):
        return None
    if verdict.cause == "io-stall" and silent.value < second.late_s and _disk_works(window, began, thresholds):
        return None  # much is being written out: a large file that is synced
    quiet = f"nothing has moved for {duration(silent.value)}: no step, no output, no bytes read or written"
    told = Evidence(
        f"{quiet}; {verdict.headline[0].lower()}{verdict.headline[1:]}", "telemetry", silent.at, silent.value
    )
    evidence = (told, *(Evidence(text, "stacks", second.snapshot.at) for text in verdict.evidence))
    return Finding(
        verdict.cause,
        verdict.confidence,
        evidence,
        subject="hang",
        headline=verdict.headline,
        standstill=Standstill(silent.value, _seen_twice(judged), bool(second.trainers)),
    )


def _disk_works(window: Window, began: float, thresholds: Thresholds) -> bool:
    moved = sum(window.rise(name, began) for name in ("disk.read_bytes", "disk.written_bytes"))
    newest = window.last("disk.written_bytes")
    return newest is not None and moved >= thresholds.disk_bytes_per_s * max(newest.at - began, 1.0)


def _seen_twice(judged: Sequence[tuple[Verdict | None, RecordedStacks]]) -> bool:
    """What cannot be taken back is not done for a single pair of looks."""
    return len(judged) > 1 and all(verdict is not None and verdict.proven for verdict, _ in judged[:2])


def _judged(
    window: Window, began: float, pair: tuple[RecordedStacks, RecordedStacks], thresholds: Thresholds
) -> Verdict | None:
    gone = {
        int(event.data["pid"]): str(event.data.get("name", ""))
        for event in window.events("process.gone")
        if abs(event.at - began) <= thresholds.gone_s and event.at <= pair[1].snapshot.at
    }
    return classify(*pair, gone)


def _pairs(
    window: Window, began: float, until: float, thresholds: Thresholds
) -> list[tuple[RecordedStacks, RecordedStacks]]:
    """The latest ones of this silence, newest first."""
    # Taken shortly before they are recorded: one that is still to be read for its moment may be too many.
    events = [event for event in window.events(RecordedStacks.KIND) if event.at > began and event.at <= until + 5.0]
    taken = [RecordedStacks.of(event) for event in events[-2 * thresholds.pairs - 1 :]]
    taken = [stacks for stacks in taken if stacks.snapshot.at <= until][-2 * thresholds.pairs :]
    shortest, longest = thresholds.apart_s
    pairs = [pair for pair in pairwise(taken) if shortest <= pair[1].snapshot.at - pair[0].snapshot.at <= longest]
    return pairs[::-1]


def _needed_s(verdict: Verdict, stacks: RecordedStacks, thresholds: Thresholds) -> float:
    if not stacks.trainers and verdict.cause == "infinite-loop":
        return thresholds.busy_before_training_s
    if not stacks.trainers and not verdict.soon and not verdict.of_files:
        return inf  # it may be a server, or wait for its turn
    if verdict.among_ranks and not verdict.soon:
        return max(stacks.soon_s, stacks.late_s / 2)  # a rank in a collective has nothing else to do
    return stacks.soon_s if verdict.soon else stacks.late_s
