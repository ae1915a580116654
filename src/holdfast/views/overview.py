"""How a run stands now, in numbers: progress, memory against its limits, loss, processes. From a live record or a finished one."""

from __future__ import annotations

import heapq
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from holdfast.journal import Follower
from holdfast.masking import masked_command
from holdfast.recorded_events import Exit
from holdfast.slope import MOST_POINTS, fall_per_s
from holdfast.views.rank_rows import SHOWN, RankRow, rank_rows
from holdfast.views.safe_text import safe
from holdfast.views.timeline import Moment, Timeline
from holdfast.vocabulary import Event, Sample, Window
from holdfast.windows import Reads, WindowBuilder

STARTS = ("run.start", "attempt.start")
PAUSES = {"job.paused": True, "run.suspended": True, "job.resumed": False, "run.resumed": False}
RATE_SPAN_S = 30.0  # of steps that count for their rate
TREND_POINTS = 8  # readings, at least, for the time until something is full,
TREND_APART_S = (2.0, 30.0)  # with so much time between them: of the last minute, and of the last ten
AHEAD = 10  # times as long as it was seen to grow: half a minute of imports says nothing about the next hour
LEAST_FALL = 0.002  # of the whole, within the time looked at: less is noise

LEVELS = (
    "host.memory_available_bytes", "host.swap_free_bytes", "cgroup.memory_working_bytes", "job.held_bytes", "job.rss_bytes",
    "gpu*.memory_used_bytes", "gpu*.job_memory_bytes",
)  # fmt: skip
READS = SHOWN | Reads(
    latest=(
        "host.memory_total_bytes", "host.swap_total_bytes", "cgroup.memory_limit_bytes", "cgroup.memory_high_bytes",
        "job.memory_budget_bytes", "job.gpu_memory_budget_bytes", "job.cpu_s", "job.threads_count", "job.silent_s",
        "gpu*.memory_total_bytes", "gpu*.utilisation_percent", "gpu*.temperature_celsius", "gpu*.power_watts",
        "train.steps_count", "train.epoch_count", "train.wait_ratio",
    ),
    course=("train.loss", "train.gradient_norm", "train.step_s", *LEVELS),
    events=(
        *STARTS, *PAUSES, Exit.KIND, "script.gone", "capabilities", "framework.loaded", "gpu.found", "train.phase",
        "train.gradient_norm_missing", "checkpoint.saved",
    ),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Level:
    """Memory against the limit that it may not pass."""

    what: str  # "host", "container", "job", "swap", "GPU 0"
    used_bytes: float
    limit_bytes: float | None
    limit_is: str  # in words: "of the machine", "its budget"…; empty where nothing limits it
    seconds_left: float | None  # until it is full, as it has grown lately; None where it does not

    @property
    def share(self) -> float | None:
        return self.used_bytes / self.limit_bytes if self.limit_bytes else None


@dataclass(frozen=True, slots=True)
class Gpu:
    index: str
    name: str
    utilisation_percent: float | None
    temperature_celsius: float | None
    power_watts: float | None


@dataclass(frozen=True, slots=True)
class Progress:
    step: int
    epoch: int | None
    phase: str  # "train", "validate", "compile"…, as the training process told it
    steps_per_s: float | None
    step_s: float | None
    wait_ratio: float | None  # of the step, waiting for data
    at: float  # when the last step was seen


@dataclass(frozen=True, slots=True)
class Curve:
    """A value over the current attempt, thinned: the latest readings in full, before them an even choice."""

    value: float  # the last; may be no finite number
    points: tuple[tuple[float, float], ...]  # (time, value)


@dataclass(frozen=True, slots=True)
class Process:
    pid: int
    parent: int
    name: str
    command: str


@dataclass(frozen=True, slots=True)
class Overview:
    run: str
    command: str  # secrets masked, safe for a terminal
    outcome: str  # "running", "paused", "completed", "failed", or "unknown": gone without an end; `why` knows more
    line: str  # the last thing that somebody should know, in words; empty while all is well
    since: float | None  # when it began
    until: float | None  # when it ended, or was last heard of; None while it goes on
    attempt: int
    framework: str
    progress: Progress | None
    checkpoint: tuple[int, float] | None  # the step of the last one, and when it was saved
    silent_s: float | None  # for how long nothing has moved
    memory: tuple[Level, ...]
    gpus: tuple[Gpu, ...]
    cores: float | None  # processor cores kept busy
    threads: int | None
    loss: Curve | None
    gradient_norm: Curve | None
    gradient_norm_missing: str
    step_s: Curve | None
    ranks: tuple[RankRow, ...]  # of a job that this run is all of; none where it trains alone, or is one of them
    processes: tuple[Process, ...]
    all_processes_listed: bool

    @property
    def is_live(self) -> bool:
        return self.outcome in ("running", "paused")


class RunReader:
    """Follows the journal of one run. The first `read` goes through all of it, later ones through what is new."""

    def __init__(self, run: Path, alive: Callable[[Sequence[Event]], bool]) -> None:
        """`alive`: whether any process that these starts name still runs (`cli.recording.any_alive`)."""
        self._run = run
        self._alive = alive
        self._follower = Follower(run / "journal", names=READS)
        self._window = WindowBuilder(READS)
        self._timeline = Timeline()
        self._starts: list[Event] = []
        self._processes: dict[int, Process] = {}
        self._all_listed = True
        self._attempt = 1
        self._ended = False
        self._heard_at = -inf

    def read(self) -> Overview:
        for record in heapq.merge(*self._follower.streams(), key=lambda record: record.at):
            self._heard_at = max(self._heard_at, record.at)
            if isinstance(record, Event):
                self._hear(record)
            if isinstance(record, Event) or (isinstance(record, Sample) and not self._is_afterwards(record)):
                self._window.take((record,))
        return self._overview()

    def _is_afterwards(self, sample: Sample) -> bool:
        """The watcher looks once more when the script has ended: at an empty job."""
        return self._ended and not sample.name.startswith("train")

    def moments(self) -> list[Moment]:
        return self._timeline.moments()

    def _hear(self, event: Event) -> None:
        self._timeline.take(event)
        self._ended = self._ended or event.kind in (Exit.KIND, Exit.OF_AN_ATTEMPT)
        if event.kind in STARTS:
            self._ended = False
            self._starts.append(event)
            self._attempt = int(event.data.get("attempt") or self._attempt)
            if event.kind == "attempt.start":
                self._window.begin_again()
        elif event.kind == "process.appeared":
            self._processes[int(event.data.get("pid", 0))] = _process(event)
        elif event.kind == "process.gone":
            self._processes.pop(int(event.data.get("pid", 0)), None)
        elif event.kind == "process.unlisted":
            self._all_listed = False

    def _overview(self) -> Overview:
        found = overview(self._run.name, self._window.window())
        if found.is_live and not self._alive(self._starts):
            found = replace(found, outcome="unknown")
        memory = found.memory if found.is_live else tuple(replace(one, seconds_left=None) for one in found.memory)
        return replace(
            found,
            memory=memory,
            line=_line(self.moments()),
            until=None if found.is_live else self._heard_at if found.until is None else found.until,
            attempt=self._attempt,
            processes=tuple(self._processes.values()),
            all_processes_listed=self._all_listed,
        )


def overview(run: str, window: Window) -> Overview:
    """Of what a window holds, in which the record of the current attempt is the last."""
    start, end = window.event("run.start"), window.event(Exit.KIND) or window.event("script.gone")
    command = shlex.join(masked_command([*map(str, start.data.get("command", ()))])) if start else "?"
    saved = window.event("checkpoint.saved")
    missing = window.event("train.gradient_norm_missing")
    return Overview(
        run=run,
        command=" ".join(safe(command).split()),
        outcome=_outcome(window, end),
        line="",
        since=start.at if start else None,
        until=end.at if end else None,
        attempt=1,
        framework=_framework(window),
        progress=_progress(window),
        checkpoint=(int(saved.data.get("step") or 0), saved.at) if saved else None,
        silent_s=window.value("job.silent_s"),
        memory=tuple(_levels(window)),
        gpus=tuple(_gpus(window)),
        cores=_rate(window.series("job.cpu_s"), RATE_SPAN_S),
        threads=_whole(window.value("job.threads_count")),
        loss=_curve(window, "train.loss"),
        gradient_norm=_curve(window, "train.gradient_norm"),
        gradient_norm_missing=safe(str(missing.data.get("reason", ""))) if missing else "",
        step_s=_curve(window, "train.step_s"),
        ranks=rank_rows(window),
        processes=(),
        all_processes_listed=True,
    )


def _outcome(window: Window, end: Event | None) -> str:
    if end is not None:
        return "unknown" if end.kind != Exit.KIND else "completed" if Exit.of(end).code == 0 else "failed"
    pauses = window.events(*PAUSES)
    return "paused" if pauses and PAUSES[pauses[-1].kind] else "running"


def _line(moments: Sequence[Moment]) -> str:
    return next((moment.text for moment in reversed(moments) if moment.weight in ("warn", "bad")), "")


def _framework(window: Window) -> str:
    """The one that trains says its title; until then, what was loaded."""
    titled = window.event("capabilities")
    if titled is not None and titled.data.get("title"):
        return safe(str(titled.data["title"]))
    loaded = window.event("framework.loaded")
    return safe(f"{loaded.data.get('name', '')} {loaded.data.get('version', '')}".strip()) if loaded else ""


def _process(event: Event) -> Process:
    data = event.data
    name = safe(str(data.get("name", "?")))
    command = " ".join(safe(str(data.get("command") or name)).split())
    return Process(int(data.get("pid", 0)), int(data.get("parent", 0)), name, command)


# -- progress


def _progress(window: Window) -> Progress | None:
    steps = window.last("train.steps_count")
    if steps is None or steps.value is None:
        return None
    phase = window.event("train.phase")
    return Progress(
        step=int(steps.value),
        epoch=_whole(window.value("train.epoch_count")),
        phase=safe(str(phase.data.get("phase", ""))) if phase else "",
        steps_per_s=_rate(window.series("train.steps_count"), RATE_SPAN_S),
        step_s=window.value("train.step_s"),
        wait_ratio=window.value("train.wait_ratio"),
        at=steps.at,
    )


def _rate(samples: Sequence[Sample], span_s: float) -> float | None:
    """Of a counter, over the last readings."""
    known = [(sample.at, sample.value) for sample in samples if sample.value is not None]
    recent = [point for point in known if point[0] >= known[-1][0] - span_s]
    if len(recent) < 2 or recent[-1][0] <= recent[0][0]:
        return None
    return max(0.0, (recent[-1][1] - recent[0][1]) / (recent[-1][0] - recent[0][0]))


def _curve(window: Window, name: str) -> Curve | None:
    points = tuple((sample.at, sample.value) for sample in window.series(name) if sample.value is not None)
    return Curve(points[-1][1], points) if points else None


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


# -- memory


def _levels(window: Window) -> Iterator[Level]:
    total = window.value("host.memory_total_bytes")
    if total and (host := _level(window, "host", "host.memory_available_bytes", total, "of the machine", left=True)):
        yield host
    limit, high = (window.value(f"cgroup.memory_{name}_bytes") for name in ("limit", "high"))
    binding = min((value for value in (limit, high) if value is not None), default=None)
    if binding and (group := _level(window, "container", "cgroup.memory_working_bytes", binding, "its limit")):
        yield group
    budget = window.value("job.memory_budget_bytes")
    held = "job.held_bytes" if window.last("job.held_bytes") is not None else "job.rss_bytes"
    if job := _level(window, "job", held, budget or total, "its budget" if budget else "of the machine"):
        yield job
    swap = window.value("host.swap_total_bytes")
    if swap and (used := _level(window, "swap", "host.swap_free_bytes", swap, "of the machine", left=True)):
        yield used
    for index in _gpu_indices(window):
        whole = window.value(f"gpu{index}.memory_total_bytes")
        if card := _level(window, f"GPU {index}", f"gpu{index}.memory_used_bytes", whole, "of the GPU"):
            yield card
        budget = window.value("job.gpu_memory_budget_bytes")
        ours = f"gpu{index}.job_memory_bytes"
        if budget and (part := _level(window, f"GPU {index} job", ours, budget, "its budget")):
            yield part


def _level(
    window: Window, what: str, name: str, whole: float | None, limit_is: str, *, left: bool = False
) -> Level | None:
    """`left`: the signal counts what is left, not what is taken."""
    known = [(sample.at, sample.value) for sample in window.series(name) if sample.value is not None]
    if name.startswith("job."):  # a process that has ended and was not waited for yet holds nothing
        known = [point for point in known if point[1] > 0]
    if not known:
        return None
    if not whole:
        return Level(what, known[-1][1], None, "", None)
    rooms = [(at, value if left else whole - value) for at, value in known]
    return Level(what, whole - rooms[-1][1], whole, limit_is, _seconds_left(rooms, whole))


def _seconds_left(rooms: Sequence[tuple[float, float]], whole: float) -> float | None:
    """The soonest end that the last minute or the last ten promise."""
    found: list[float] = []
    for apart_s in TREND_APART_S:
        recent = [point for point in rooms if point[0] >= rooms[-1][0] - MOST_POINTS * apart_s]
        seen_s = rooms[-1][0] - recent[0][0]
        falls = fall_per_s(recent, apart_s, TREND_POINTS) or 0.0
        if falls > 0 and falls * seen_s >= LEAST_FALL * whole:
            found += [seconds] if (seconds := max(0.0, rooms[-1][1]) / falls) <= AHEAD * seen_s else []
    return min(found, default=None)


def _gpu_indices(window: Window) -> list[str]:
    prefix, suffix = "gpu", ".memory_used_bytes"
    found = (name[len(prefix) : -len(suffix)] for name in window.names(prefix, suffix))
    return sorted(found, key=lambda index: (len(index), index))


def _gpus(window: Window) -> Iterator[Gpu]:
    names = {str(event.data.get("index")): str(event.data.get("name") or "") for event in window.events("gpu.found")}
    for index in _gpu_indices(window):
        about = (
            window.value(f"gpu{index}.{what}") for what in ("utilisation_percent", "temperature_celsius", "power_watts")
        )
        yield Gpu(index, safe(names.get(index, "")), *about)


def processes_in_order(processes: Iterable[Process]) -> list[tuple[int, Process]]:
    """Each below its parent, with its depth."""
    listed = list(processes)
    known = {process.pid for process in listed}
    children: dict[int, list[Process]] = {}
    for process in listed:
        children.setdefault(process.parent if process.parent in known else 0, []).append(process)
    found: list[tuple[int, Process]] = []

    def add(parent: int, depth: int) -> None:
        for process in children.get(parent, ()):
            found.append((depth, process))
            add(process.pid, depth + 1)

    add(0, 0)
    return found
