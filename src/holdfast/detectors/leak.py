"""Memory that grows with the steps and does not stop: on the host, on the GPU.

A slope alone is a suspicion: a cache fills in the first epoch, figures are kept until the end of an epoch. It is reported
when it goes on in a later epoch, or when the training process has found what grows and nobody keeps that on purpose.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.detectors import trend
from holdfast.detectors.endings import ENDING, ending
from holdfast.detectors.trend import Growth, growth, points, points_by_clock
from holdfast.units import amount
from holdfast.vocabulary import Detail, Evidence, Finding, MemoryGrowth, Window
from holdfast.windows import Reads, reads

LEAKS = HOST, GPU = "host-memory-leak", "gpu-memory-leak"
SUSPECTED, NAMED = 0.4, 0.85  # confidence
BY_SLOPE = 0.8  # confidence of a growth that took most of the room until the end
KEPT_RATIO = 0.3  # of the growth: if allocations rose by less, an existing buffer is being filled, and that is no leak
TAKEN_RATIO, TAKEN_BYTES, TAKEN_RISES = 0.5, 64 << 20, 4.0  # of the room, at least, and in at least so many rises
SHORT_RUN = trend.Thresholds(warm_up_steps=3, points=6, steps=12, seconds=0.15, grown_bytes=64 << 20, grown_ratio=0.1)
NEVER_ON_PURPOSE = {"graph", "trace", "variable"}
WHAT_GROWS = Reads(course=("train.kept_bytes",), events=("examined", "train.compiled", "script.exit", "aftermath"))


@dataclass(frozen=True, slots=True)
class Thresholds:
    held_steps: int = 120  # what a list or attribute of the script holds may be dropped at the end of the epoch
    held_bytes: float = 64 << 20
    # Where no Python object grows:
    unseen_rises: float = 8.0  # fewer are the jumps of checkpoints and validations
    unseen_steps: int = 150  # without epochs
    unseen_bytes: float = 256 << 20  # measured: copies for 36 checkpoints of 20 MB left 200 MB in glibc's heaps
    patience_bytes: float = 640 << 20  # from here on nothing more is waited for: no examination, no end of an epoch
    explained_ratio: float = 0.2  # of the growth: what grows by less (a list of floats) is not the leak
    retraced_ratio: float = 0.2  # traces per step


def find_leaks(window: Window) -> list[Finding]:
    return [finding for finding in (find_host(window), find_gpu(window)) if finding is not None]


@reads(
    trend.BY_CLOCK, WHAT_GROWS, course=["train.rss_bytes", "job.rss_bytes", "train.not_kept_bytes"]
)  # fmt: skip
def find_host(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    inside = growth(points(window, "train.rss_bytes"))
    if inside is not None:
        return _finding(window, HOST, "memory", inside, thresholds)
    around = growth(
        points_by_clock(window, "job.rss_bytes", less="train.not_kept_bytes")
    )  # what helpers of the trainer hold, too
    if around is None:
        return None
    found = _finding(window, HOST, "memory", around, thresholds)
    return replace(found, growth=replace(found.growth, in_helpers=True)) if found.growth is not None else found


@reads(trend.BY_STEP, WHAT_GROWS, course=["train.allocated_bytes"])
def find_gpu(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    found = growth(points(window, "train.allocated_bytes"))
    return None if found is None else _finding(window, GPU, "GPU memory", found, thresholds)


@reads(ENDING, find_host.reads, find_gpu.reads, latest=["cgroup.memory_limit_bytes"])
def find_ending(window: Window) -> list[Finding]:
    """After a run that failed. What was found while it ran is known beside it."""
    how = ending(window)
    if how is not None and how.code == 0:
        return []
    return [_surer(window, finding) for finding in _find_at_the_end(window)]


def _find_at_the_end(window: Window, thresholds: Thresholds = Thresholds()) -> list[Finding]:
    """A fast leak is over before there is much of it to see; and then there is no further step to wait for."""
    found = find_leaks(window)
    if found:
        return found
    course = growth(points(window, "train.rss_bytes"), SHORT_RUN)
    return [] if course is None else [_finding(window, HOST, "memory", course, thresholds)]


def _surer(window: Window, finding: Finding) -> Finding:
    """Where memory grew steadily with the steps until it was gone, that is the reason, whoever held it.

    It has to have taken most of the room there was when it began: beside a jump to the limit it is a small matter. What
    loader workers hold rises during their first pass as a rule, whether they keep it for ever or not.
    """
    growth = finding.growth
    if growth is None:
        return finding
    grown, held = growth.grown_bytes, growth.held_bytes
    limit = window.value("cgroup.memory_limit_bytes") if finding.cause == HOST else None
    room = (limit or held) - (held - grown)
    if finding.confidence >= BY_SLOPE or grown < max(TAKEN_RATIO * room, TAKEN_BYTES):
        return finding
    if growth.rises < TAKEN_RISES or growth.bounded or growth.in_helpers:
        return finding
    return replace(finding, confidence=BY_SLOPE)


def _details(holder: str) -> dict[str, str]:
    return {Detail.HOLDER: holder} if holder else {}


def _finding(window: Window, cause: str, what: str, found: Growth, thresholds: Thresholds) -> Finding:
    grower = _traced(window, found, thresholds) or _grower(window, found, thresholds)
    awaited = grower is None and _not_looked_into(window) and found.amount < thresholds.patience_bytes
    filled = grower is None and cause == HOST and _is_filled(window, found)
    named = _is_certain(found, grower, thresholds) and not awaited and not filled
    rate = f"{what} grows {amount(found.per_step, 'bytes')} a step"
    first = rate + (f": {_in_words(grower)}" if grower else "")
    over = (
        f"{amount(found.first.level, 'bytes')} at step {found.first.step:.0f}, "
        f"{amount(found.last.level, 'bytes')} at step {found.last.step:.0f}"
    )
    evidence = [Evidence(first, "telemetry", found.last.at, found.per_step)]
    evidence.append(Evidence(f"{what} of the job: {over}", "telemetry", found.last.at, found.last.level))
    if found.survived:
        evidence.append(Evidence("it went on growing in a later epoch", "telemetry", found.last.at))
    holder = str(grower.get("holder", "")) if grower else ""
    headline = f"{what[0].upper()}{what[1:]} leaks: {amount(found.per_step, 'bytes')} more with every step" + (
        f", held by {holder}" if holder else ""
    )
    growth = MemoryGrowth(
        per_step_bytes=found.per_step,
        grown_bytes=found.amount,
        held_bytes=found.last.level,
        rises=found.rises,
        bounded=bool(grower and grower.get("bounded")) or filled,
        unexplained=not grower,
        holder=holder,
    )
    confidence = NAMED if named else SUSPECTED
    return Finding(cause, confidence, tuple(evidence), _details(holder), headline=headline, growth=growth)


def _is_certain(found: Growth, grower: Mapping[str, Any] | None, thresholds: Thresholds) -> bool:
    if grower is not None and grower.get("bounded"):
        return False  # a buffer that is being filled
    if grower is None and (found.rises < thresholds.unseen_rises or found.amount < thresholds.unseen_bytes):
        return False
    if found.survived:
        return True
    if grower is None:
        no_epochs = found.last.epoch is None
        return no_epochs and found.steps >= thresholds.unseen_steps
    if grower["kind"] in NEVER_ON_PURPOSE:
        return True
    if grower.get("of_the_data"):
        return False  # a cache, until it has seen everything once
    if grower.get("uncollected"):
        return found.amount >= thresholds.patience_bytes  # a script that calls gc.collect() itself, every so often
    long_enough = found.steps >= thresholds.held_steps and found.amount >= thresholds.held_bytes
    return long_enough or found.amount >= thresholds.patience_bytes


def _is_filled(window: Window, found: Growth) -> bool:
    """No memory was asked for meanwhile: one that had been set aside as a whole is being filled, up to its size."""
    kept = [point for point in points(window, "train.kept_bytes") if found.first.at <= point.at <= found.last.at]
    return len(kept) > 1 and kept[-1].level - kept[0].level < KEPT_RATIO * found.amount


def _not_looked_into(window: Window) -> bool:
    """While it runs. Afterwards there is nobody left to ask."""
    return not window.events("examined", "script.exit", "aftermath")


def _traced(window: Window, found: Growth, thresholds: Thresholds) -> Mapping[str, Any] | None:
    """Functions compiled anew all the time: each trace is kept."""
    compiled = [event for event in window.events("train.compiled") if event.at >= found.first.at]
    names = Counter(str(event.data.get("what", "?")) for event in compiled)
    for name, count in names.most_common(1):
        if count >= max(5, thresholds.retraced_ratio * found.steps):
            return {"kind": "trace", "what": f"{name} was compiled again", "count": count, "times": True}
    return None


def _grower(window: Window, found: Growth, thresholds: Thresholds) -> Mapping[str, Any] | None:
    """What the last look inside says grows, if it accounts for the growth; what grew before it began does not."""
    looks = [event for event in window.events("examined") if event.at >= found.first.at]
    for event in reversed(looks):
        enough = thresholds.explained_ratio * found.per_step * max(1.0, float(event.data.get("steps", 1)))
        telling = [
            grower
            for grower in event.data.get("growing", ())
            if grower["kind"] in NEVER_ON_PURPOSE or float(grower.get("bytes", 0)) >= enough
        ]
        if telling:
            grower = _with_holder(telling, enough)
            garbage = event.data.get("collects") is False and not grower.get("holder")
            return {**grower, "uncollected": True} if garbage else grower
    return None


def _with_holder(telling: Sequence[Mapping[str, Any]], enough: float) -> Mapping[str, Any]:
    """The most certain one; where nobody is known to hold it, what is held and large enough: the models, not their weights."""
    first = telling[0]
    held = [grower for grower in telling if grower.get("holder") and float(grower.get("bytes", 0)) >= enough]
    return dict(first) if first.get("holder") or not held else {**held[0], "kind": first["kind"]}


def _in_words(grower: Mapping[str, Any]) -> str:
    if grower.get("times"):
        return f"{grower['what']} {grower['count']} times"
    held = f", held by {grower['holder']}" if grower.get("holder") else ""
    return f"{grower['count']} more {grower['what']}{held}"
