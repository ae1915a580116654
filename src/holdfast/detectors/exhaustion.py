"""Something finite is filling up: memory, disk, descriptors, the room below a temperature limit.

It is reported only while it keeps growing towards its end. A job that sits steadily at 95 %, a framework that takes
the whole GPU at once and a page cache that fills are all healthy.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from holdfast.detectors.files_read import KIND, files_read
from holdfast.slope import fall_per_s
from holdfast.units import amount, duration
from holdfast.vocabulary import Evidence, Finding, Sample, Window, unit_of
from holdfast.windows import DeclaredWindow, Reads, reads

STEPS = "train.steps_count"


@dataclass(frozen=True, slots=True)
class Thresholds:
    tight_ratio: float = 0.10  # less of the whole is left, and it will be used up within
    tight_s: float = 300.0
    steep_ratio: float = (
        0.15  # or this is left (at 0.25 importing a framework in a small container was reported) within
    )
    steep_s: float = 5.0
    samples: int = 8  # at least; one jump among eight readings has a median slope of zero
    span_s: float = 30.0  # of readings that count


@dataclass(frozen=True, slots=True)
class Exhaustible:
    """`level` is what is left (`counts="left"`) or what is taken (`counts="taken"`); `*` stands for an instance."""

    what: str
    cause: str
    level: str
    whole: str
    counts: str
    slows_from: str = ""  # where the kernel slows the job down before that: then this is the whole
    ours: str = ""  # the job's part of it; where that is next to nothing, others fill it and nothing is reported
    ours_of: str = ""  # what the job's part is compared with, where that is not the whole
    ours_ratio: float = 0.01
    holds_data: bool = False  # then what the job is reading before its first step is told as well
    patience_s: float = 2.0  # a trend lasts at least this long; a framework may allocate a whole GPU in a second or two

    @property
    def reads(self) -> Reads:
        names = (self.level, self.whole, self.slows_from, self.ours, self.ours_of, STEPS if self.holds_data else "")
        return Reads(latest=tuple(filter(None, names)), events=(KIND,) if self.holds_data else ())


EDGES = (
    Exhaustible(
        "memory",
        "host-memory-exhausted",
        "host.memory_available_bytes",
        "host.memory_total_bytes",
        "left",
        holds_data=True,
    ),
    Exhaustible(
        "memory of this container",
        "container-memory-limit",
        "cgroup.memory_working_bytes",
        "cgroup.memory_limit_bytes",
        "taken",
        slows_from="cgroup.memory_high_bytes",
        holds_data=True,
    ),
    Exhaustible(
        "the job's memory budget",
        "host-memory-exhausted",
        "job.held_bytes",
        "job.memory_budget_bytes",
        "taken",
        holds_data=True,
    ),
    Exhaustible(
        "the job's GPU memory budget (*)",
        "gpu-memory-exhausted",
        "gpu*.job_memory_bytes",
        "job.gpu_memory_budget_bytes",
        "taken",
    ),
    Exhaustible(
        "swap",
        "swap-thrash",
        "host.swap_free_bytes",
        "host.swap_total_bytes",
        "left",
        ours="job.rss_bytes",
        ours_of="host.memory_total_bytes",
        ours_ratio=0.05,
    ),
    Exhaustible(
        "GPU memory (*)",
        "gpu-memory-exhausted",
        "gpu*.memory_used_bytes",
        "gpu*.memory_total_bytes",
        "taken",
        ours="gpu*.job_memory_bytes",
        patience_s=8.0,
    ),
    Exhaustible("disk *", "disk-full", "disk[*].free_bytes", "disk[*].total_bytes", "left"),
    Exhaustible("/dev/shm", "shared-memory-exhausted", "shm.free_bytes", "shm.total_bytes", "left"),
    Exhaustible("open files", "too-many-open-files", "job.open_files_count", "job.open_files_limit_count", "taken"),
    Exhaustible(
        "GPU temperature (*)", "gpu-overheating", "gpu*.temperature_celsius", "gpu*.temperature_limit_celsius", "taken"
    ),
    Exhaustible(
        "CPU temperature", "cpu-overheating", "cpu.temperature_celsius", "cpu.temperature_limit_celsius", "taken"
    ),
)
MEMORY_EDGES = EDGES[:5]


def find_edges(window: Window) -> list[Finding]:
    return [finding for edge in EDGES for finding in find_edge(window, edge)]


def find_edge(window: Window, edge: Exhaustible, thresholds: Thresholds = Thresholds()) -> list[Finding]:
    window = DeclaredWindow(window, edge.reads)
    findings = (_find(window, instance, thresholds) for instance in _instances(window, edge))
    return [finding for finding in findings if finding is not None]


@reads(*(edge.reads for edge in MEMORY_EDGES))
def pace_s(window: Window) -> float:
    """Seconds until the next look: one at rest, down to a twentieth as memory gets tight.

    Eight looks in the time that the last two readings leave.
    """
    pace = 1.0
    for edge in MEMORY_EDGES:
        for instance in _instances(window, edge):
            whole = _whole(window, instance)
            left = [_left(instance, sample, whole) for sample in window.series(instance.level)[-2:]]
            if not whole or len(left) < 2 or left[-1] is None or left[0] is None:
                continue
            if left[-1] < 0.05 * whole:
                pace = min(pace, 0.2)
            before, after = window.series(instance.level)[-2:]
            fall_per_s = (left[0] - left[-1]) / max(after.at - before.at, 1e-3)
            if fall_per_s > 0:
                pace = min(pace, left[-1] / fall_per_s / 8)
    return max(0.05, pace)


def _find(window: Window, edge: Exhaustible, thresholds: Thresholds) -> Finding | None:
    newest, whole = window.last(edge.level), _whole(window, edge)
    if newest is None or not whole:
        return None
    left = _left(edge, newest, whole)
    if left is None or left > thresholds.steep_ratio * whole or _not_ours(window, edge, whole):
        return None
    recent = window.series(edge.level, since=newest.at - thresholds.span_s)
    fall_per_s = fall(edge, recent, whole, thresholds.samples)
    if fall_per_s is None or fall_per_s <= 0:
        return None
    seconds = max(0.0, left) / fall_per_s
    tight = left < thresholds.tight_ratio * whole and seconds < thresholds.tight_s
    if not tight and seconds > thresholds.steep_s:
        return None
    unit = unit_of(edge.level)
    text = (
        f"{edge.what}: {amount(whole - left, unit)} of {amount(whole, unit)} in use, "
        f"growing {amount(fall_per_s, unit)}/s: full in about {duration(seconds)}"
    )
    if unit == "celsius":
        text = f"{edge.what}: {whole - left:.0f} °C, rising; the limit of {whole:.0f} °C in about {duration(seconds)}"
    evidence = Evidence(text, "telemetry", newest.at, newest.value)
    loading = edge.holds_data and window.last(STEPS) is None
    reading = files_read(window) if loading else []
    return Finding(edge.cause, 0.6, (evidence, *reading), subject=edge.what, seconds_left=seconds)


def _whole(window: Window, edge: Exhaustible) -> float | None:
    found = (window.value(name) for name in (edge.whole, edge.slows_from) if name)
    return min((value for value in found if value is not None), default=None)


def _not_ours(window: Window, edge: Exhaustible, whole: float) -> bool:
    held = window.value(edge.ours) if edge.ours else None
    against = window.value(edge.ours_of) if edge.ours_of else whole
    return held is not None and against is not None and held < edge.ours_ratio * against


def fall(edge: Exhaustible, samples: Sequence[Sample], whole: float, at_least: int) -> float | None:
    points = [(sample.at, left) for sample in samples if (left := _left(edge, sample, whole)) is not None]
    return fall_per_s(points, edge.patience_s / at_least, at_least)


def _left(edge: Exhaustible, sample: Sample, whole: float | None) -> float | None:
    if sample.value is None or whole is None:
        return None
    return sample.value if edge.counts == "left" else whole - sample.value


def _instances(window: Window, edge: Exhaustible) -> Iterator[Exhaustible]:
    if "*" not in edge.level:
        yield edge
        return
    prefix, suffix = edge.level.split("*")
    for name in window.names(prefix, suffix):
        instance = name[len(prefix) : len(name) - len(suffix)]
        fill = [text.replace("*", instance) for text in (edge.what, edge.level, edge.whole, edge.ours)]
        yield replace(edge, what=fill[0], level=fill[1], whole=fill[2], ours=fill[3])
