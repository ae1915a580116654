"""From one moment on every step takes several times as long, with batches of the same shape: and what else changed then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from holdfast.vocabulary import Evidence, Finding, Sample, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    times: float = 3.0
    stays: float = 2.0  # times as slow, each of the later readings
    before_s: float = 30.0
    after_s: float = 30.0
    samples: tuple[int, int] = (20, 5)  # at least, before and after: slow steps give few
    step_s: float = 0.005  # at least: what a step of a millisecond takes depends on the weather
    settled: int = 5  # readings right before the change that were still as before…
    settled_ratio: float = 1.4  # …within so much
    waits_ratio: float = 0.5  # a step that waits for data is told as that
    changed: float = 2.0  # times as much of something beside


# What may have changed beside it: a signal, whether it is a counter, the least that matters, in words.
BESIDE = (
    ("host.swap_in_count", True, 50.0, "pages were swapped in"),
    ("pressure.io_some_percent", False, 10.0, "some process waited for a disk"),
    ("pressure.memory_some_percent", False, 5.0, "some process waited for memory"),
    ("pressure.cpu_some_percent", False, 20.0, "some process waited for a processor"),
    ("host.load_ratio", False, 1.0, "processes that want a processor, for each there is"),
    ("cpu.throttle_count", True, 0.1, "the processor was slowed down for heat"),
    ("job.cpu_waiting_count", False, 1.0, "threads of the job that wait for a processor"),
)


@reads(
    course=["train.step_s"],
    latest=["train.wait_ratio", *(name for name, *_ in BESIDE)],
    events=["train.batch", "train.phase"],
)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    steps = [sample for sample in window.series("train.step_s") if sample.value]
    if not steps:
        return None
    border = steps[-1].at - thresholds.after_s
    before, after = [s for s in steps if s.at < border], [s for s in steps if s.at >= border]
    if len(before) < thresholds.samples[0] or len(after) < thresholds.samples[1]:
        return None
    # Slow ones that began before the border belong to what came after it.
    usual = median(_values(before))
    while before and _of(before[-1]) >= thresholds.stays * usual:
        after.insert(0, before.pop())
    if not _slower(before, after, usual, thresholds) or _explained(window, after[0].at, thresholds):
        return None
    now = median(_values(after))
    text = f"a step takes {_span(now)} since {after[-1].at - after[0].at:.0f} s, and took {_span(usual)} before"
    told = Evidence(f"{text}: {now / usual:.1f} times as long", "telemetry", after[0].at, now)
    headline = f"Steps became {now / usual:.1f} times slower"
    evidence = (told, *_beside(window, after[0].at, thresholds))
    return Finding("step-slowdown", 0.75, evidence, headline=headline)


def _slower(before: Sequence[Sample], after: Sequence[Sample], usual: float, thresholds: Thresholds) -> bool:
    if len(before) < thresholds.samples[0] or before[-1].at - before[0].at < thresholds.before_s:
        return False
    # A jump, not a growth: the last ones before it were as all the others.
    settled = median(_values(before[-thresholds.settled :])) < thresholds.settled_ratio * usual
    now = median(_values(after))
    stays = min(_values(after)) >= thresholds.stays * usual
    return settled and stays and now >= thresholds.times * usual and now >= thresholds.step_s


def _explained(window: Window, since: float, thresholds: Thresholds) -> bool:
    """By larger batches, another phase, or waiting for data."""
    near = since - 2 * max(1.0, thresholds.after_s / 10)
    if any(event.at >= near for event in window.events("train.batch", "train.phase")):
        return True
    waits = [sample.value for sample in window.series("train.wait_ratio", since) if sample.value is not None]
    return bool(waits) and median(waits) >= thresholds.waits_ratio


def _beside(window: Window, since: float, thresholds: Thresholds) -> list[Evidence]:
    found = []
    for name, counts, least, words in BESIDE:
        series = [sample for sample in window.series(name) if sample.value is not None]
        was, now = (_level([s for s in series if (s.at >= since) is later], counts) for later in (False, True))
        if was is not None and now is not None and now >= least and now >= thresholds.changed * was:
            unit = "%" if name.endswith("percent") else "a second" if counts else ""
            found.append(
                Evidence(
                    f"at the same moment: {words}: {now:.3g} {unit} (before: {was:.3g})".replace("  ", " "),
                    "telemetry",
                    since,
                    now,
                )
            )
    return found


def _level(samples: Sequence[Sample], counts: bool) -> float | None:
    if len(samples) < 2:
        return None
    if not counts:
        return median(_values(samples))
    seconds = samples[-1].at - samples[0].at
    return (_of(samples[-1]) - _of(samples[0])) / seconds if seconds > 0 else None


def _values(samples: Sequence[Sample]) -> list[float]:
    return [_of(sample) for sample in samples]


def _of(sample: Sample) -> float:
    return sample.value if sample.value is not None else 0.0


def _span(seconds: float) -> str:
    return f"{seconds * 1000:.0f} ms" if seconds < 1 else f"{seconds:.1f} s"
