"""One rank is slower than the others, and all wait for it in every step.

Step times do not tell: ranks that wait for one another take the same. What tells is how long each takes by itself, from its last
update to its backward pass, in which the waiting begins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from holdfast.fleet.stories import READS, RankStory, signals_of, stories
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

DATA, COMPUTES, WAITS = "data", "computes", "waits"
WORDS = {
    DATA: "its data comes late",
    COMPUTES: "it computes longer",
    WAITS: "it waits for something of its own",
}


@dataclass(frozen=True, slots=True)
class Thresholds:
    seconds: float = 60.0  # that are looked back
    least_s: float = 12.0
    samples: int = 15
    times: float = 1.7  # as long as the others: length of texts, caches and neighbours make 1.3
    of_the_step: float = 0.25  # lost
    of_the_wait: float = 0.5  # of the difference: it waits for its data
    computes, idles = 0.7, 0.2  # of its own time; on a busy machine a thread that never waits gets no more than a third


@dataclass(frozen=True, slots=True)
class Pace:
    story: RankStory
    prefix: str
    own: tuple[float, ...]
    at: float

    @property
    def typical_s(self) -> float:
        return median(self.own)


@reads(READS, latest=["train*.own_s", "train*.own_cpu_s", "train*.wait_ratio", "train*.step_s", "gpu*.sm_clock_mhz"])
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    paces = _paces(window, thresholds)
    if len(paces) < 2:
        return None
    slowest = max(paces, key=lambda pace: pace.typical_s)
    others = [pace for pace in paces if pace is not slowest]
    usual_s = median(pace.typical_s for pace in others)
    step_s = _typical(window, f"{slowest.prefix}.step_s", slowest, thresholds)
    lost_s = slowest.typical_s - usual_s
    if slowest.typical_s < thresholds.times * usual_s or lost_s < thresholds.of_the_step * step_s:
        return None
    # Always the same one: where each has long batches at times, somebody is always the slowest.
    if quantiles(slowest.own, n=4)[0] < max(quantiles(pace.own, n=4)[2] for pace in others):
        return None
    rank = slowest.story.rank
    text = (
        f"{slowest.story.name} takes {_ms(slowest.typical_s)} until its backward pass, the others {_ms(usual_s)}: "
        f"all of them lose {_ms(lost_s)} of each {_ms(step_s)} step"
    )
    reason, evidence = _reason(window, slowest, others, lost_s, thresholds)
    why = f": {WORDS[reason]}" if reason else ""
    details = {reason or "not known": True, "rank": rank, "gpu": bool(window.names("gpu", ".sm_clock_mhz"))}
    told = (Evidence(text, "telemetry", slowest.at, slowest.typical_s), *evidence)
    headline = f"Rank {rank} is slower than the others, which wait for it in every step{why}"
    return Finding("straggler", 0.85, told, details, subject=f"rank {rank}", headline=headline)


def _paces(window: Window, thresholds: Thresholds) -> list[Pace]:
    found, prefixes = [], signals_of(window)
    for story in stories(window):
        prefix = prefixes.get(story.joined.pid)
        newest = window.last(f"{prefix}.own_s") if prefix is not None else None
        if prefix is None or newest is None or story.stopped_at is not None:
            continue
        samples = [s for s in window.series(f"{prefix}.own_s", newest.at - thresholds.seconds) if s.value is not None]
        if len(samples) >= thresholds.samples and samples[-1].at - samples[0].at >= thresholds.least_s:
            found.append(Pace(story, prefix, tuple(s.value or 0.0 for s in samples), newest.at))
    return found


def _typical(window: Window, name: str, pace: Pace, thresholds: Thresholds) -> float:
    values = [s.value for s in window.series(name, pace.at - thresholds.seconds) if s.value is not None]
    return median(values) if values else 0.0


def _reason(
    window: Window, slowest: Pace, others: Sequence[Pace], lost_s: float, thresholds: Thresholds
) -> tuple[str, list[Evidence]]:
    """Why, and what was seen of it; nothing where nothing is."""

    def waited_s(pace: Pace) -> float:
        ratio = _typical(window, f"{pace.prefix}.wait_ratio", pace, thresholds)
        return ratio * _typical(window, f"{pace.prefix}.step_s", pace, thresholds)

    waits_s, usual_s = waited_s(slowest), median(waited_s(pace) for pace in others)
    if waits_s - usual_s >= thresholds.of_the_wait * lost_s:
        text = f"it waits {_ms(waits_s)} a step for its data, the others {_ms(usual_s)}"
        return DATA, [Evidence(text, "telemetry", slowest.at, waits_s)]
    ran_s = _typical(window, f"{slowest.prefix}.own_cpu_s", slowest, thresholds)
    share = ran_s / max(slowest.typical_s, 1e-9)
    text = f"of its own time its main thread computes {share:.0%}"
    seen = [Evidence(text, "telemetry", slowest.at, share)]
    if share >= thresholds.computes:
        return COMPUTES, seen
    return (WAITS if share <= thresholds.idles else ""), seen


def _ms(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
