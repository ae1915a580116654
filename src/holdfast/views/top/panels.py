"""What each part of the screen says, as rows of text with a weight: the terminal colours them, plain text prints them."""

from __future__ import annotations

import math
import textwrap
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.units import amount, duration
from holdfast.views.overview import Curve, Level, Overview, Process, Progress, processes_in_order
from holdfast.views.rank_rows import RankRow
from holdfast.views.safe_text import safe
from holdfast.views.timeline import Moment, Weight
from holdfast.views.top.curves import drawn, over_time

DAY_S = 86400.0
TIGHT = 0.95  # of a limit
SOON_S = 60.0  # until something is full
LATE_S = 10.0  # without a step, for it to be told
STARVED = 0.5  # of a step waiting for data
LABEL = 21  # columns before a curve
MOST_WIDTH, MOST_HEIGHT = 80, 8  # of a curve


class Row(NamedTuple):
    text: str
    weight: Weight | None = None  # None: as the rest of the text


@dataclass(frozen=True, slots=True)
class Symbols:
    full: str
    empty: str
    heights: str
    marks: Mapping[Weight, str]
    more: str  # where a text was cut


@dataclass(frozen=True, slots=True)
class Canvas:
    """What is drawn on."""

    width: int
    symbols: Symbols
    height: int = 0  # to be filled, if any


UNICODE = Symbols("█", "░", "▁▂▃▄▅▆▇█", {"note": "·", "warn": "!", "bad": "✗", "done": "✓"}, "…")
ASCII = Symbols("#", ".", "_.-=^", {"note": "-", "warn": "!", "bad": "X", "done": "+"}, "~")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What `why` answers, as far as the screen shows it."""

    outcome: str
    line: str  # safe for a terminal
    noticed: tuple[str, ...] = ()  # the titles of what was found in a run that goes on, worst first
    ranks: tuple[RankRow, ...] = ()  # of the job that this run is one rank of


@dataclass(frozen=True, slots=True)
class ProcessState:
    """What one process of a live run does right now."""

    state: str
    rss_bytes: float


LookAt = Callable[[int], ProcessState | None]


def cut(text: str, canvas: Canvas) -> str:
    return text if len(text) <= canvas.width else text[: max(0, canvas.width - 1)] + canvas.symbols.more


# -- above all


def head(found: Overview, verdict: Verdict | None, now: float) -> str:
    attempt = f"  attempt {found.attempt}" if found.attempt > 1 else ""
    return f"{found.run}  {_since(found, verdict, now)}{attempt}"


def _since(found: Overview, verdict: Verdict | None, now: float) -> str:
    if found.since is None:
        return "nothing is recorded yet"
    took = duration((now if found.until is None else found.until) - found.since)
    if found.is_live:
        return f"{found.outcome} for {took}"
    judged = verdict is not None and verdict.outcome not in ("running", "stalled")  # by what it knew before the end
    return f"{verdict.outcome if verdict is not None and judged else found.outcome} after {took}"


def verdict_rows(found: Overview, verdict: Verdict | None) -> list[Row]:
    """Until `why` has answered, what was told last."""
    rows = [Row("paused: p lets it go on", "warn")] if found.outcome == "paused" else []
    if verdict is None:
        told = [Row(found.line, "warn")] if found.line else []
        return [*rows, Row("looking…" if found.is_live else "looking at how it ended…", "note"), *told]
    nothing = verdict.outcome == "running" and not verdict.noticed
    rows.append(
        Row(f"{verdict.line} Nothing is wrong that was noticed." if nothing else verdict.line, verdict_weight(verdict))
    )
    if verdict.noticed:
        rows.append(Row(f"noticed: {'; '.join(verdict.noticed)}", "warn"))
    return rows


def verdict_weight(verdict: Verdict) -> Weight:
    if verdict.outcome in ("completed", "recovered"):
        return "done"
    if verdict.outcome == "running":
        return "warn" if verdict.noticed else "done"
    return "warn" if verdict.outcome == "stopped" else "bad"


# -- progress


def progress_rows(found: Overview, canvas: Canvas, now: float) -> list[Row]:
    progress = found.progress
    if progress is None:
        about = f"{found.framework}: no step yet" if found.framework else "no training steps seen"
        return [Row(about, "note"), *_silence(found)]
    epoch = f"  epoch {progress.epoch}" if progress.epoch is not None else ""
    rate = f"  {_rate(progress.steps_per_s)}" if progress.steps_per_s is not None and found.is_live else ""
    parts = f"step {progress.step}{epoch}{rate}  {_phase(progress, found.is_live)}".rstrip()
    rows = [Row(f"{parts}{_checkpoint(found, now)}"), _step_time(progress, found.step_s, canvas)]
    late_s = now - progress.at
    if found.outcome == "running" and late_s > max(LATE_S, 10 * (progress.step_s or 0.0)):
        rows.append(Row(f"no step for {duration(late_s)}", "warn"))
    return [*rows, *_silence(found)]


def _phase(progress: Progress, is_live: bool) -> str:
    doing = {"train": "training", "validate": "validating", "compile": "compiling", "save": "saving"}
    return doing.get(progress.phase, "") if is_live else ""


def _rate(per_s: float) -> str:
    return f"{per_s:.3g} steps/s" if per_s >= 0.1 else f"{per_s * 60:.3g} steps/min"


def _checkpoint(found: Overview, now: float) -> str:
    if found.checkpoint is None:
        return ""
    step, at = found.checkpoint
    ago = f", {duration(max(0.0, now - at))} ago" if found.is_live else ""
    return f"  checkpoint of step {step}{ago}"


def _step_time(progress: Progress, course: Curve | None, canvas: Canvas) -> Row:
    if progress.step_s is None:
        return Row("step time not known", "note")
    waits = f"{progress.wait_ratio:.0%} waiting for data" if progress.wait_ratio is not None else ""
    starved = progress.wait_ratio is not None and progress.wait_ratio >= STARVED
    return _curve_row("step time", _seconds(progress.step_s), course, waits, canvas)._replace(
        weight="warn" if starved else None
    )


def _silence(found: Overview) -> list[Row]:
    if found.outcome != "running" or found.silent_s is None or found.silent_s < LATE_S:
        return []
    return [Row(f"nothing has moved for {duration(found.silent_s)}: no output, no bytes", "warn")]


def _seconds(value: float) -> str:
    return f"{value * 1000:.3g} ms" if value < 1 else f"{value:.3g} s"


# -- ranks


def rank_rows(found: Overview, verdict: Verdict | None, canvas: Canvas) -> list[Row]:
    """None for a process that trains alone."""
    ranks = found.ranks or (verdict.ranks if verdict is not None else ())
    if not ranks:
        return []
    host = max(4, *(len(safe(one.host)) for one in ranks))
    title = Row(cut(f"  rank  {'host':{host}}  {'steps':>8}  {'step':>8}  {'own part':>8}  data", canvas), "note")
    return [title, *(_rank_row(one, host, canvas) for one in ranks)]


def _rank_row(one: RankRow, host: int, canvas: Canvas) -> Row:
    steps = "?" if one.steps is None else str(one.steps)
    step, own = (_seconds(value) if value is not None else "" for value in (one.step_s, one.own_s))
    waits = f"{one.wait_ratio:.0%}" if one.wait_ratio is not None else ""
    begin = f"{'>' if one.was_first else ' '} {one.rank:4}  {safe(one.host):{host}}  {steps:>8}  "
    text = f"{begin}{safe(one.ended)}" if one.ended else f"{begin}{step:>8}  {own:>8}  {waits:>4}"
    return Row(cut(text.rstrip(), canvas), "bad" if one.was_first else None)


# -- memory


def memory_rows(found: Overview, canvas: Canvas) -> list[Row]:
    label = max((len(level.what) for level in found.memory), default=0)
    said = [_level_said(level, found) for level in found.memory]
    room = max(6, min(30, canvas.width - label - max(map(len, said), default=0) - 3))
    rows = []
    for level, words in zip(found.memory, said, strict=True):
        filled = round(min(1.0, max(0.0, level.share or 0.0)) * room)
        bar = canvas.symbols.full * filled + canvas.symbols.empty * (room - filled)
        rows.append(Row(f"{level.what:<{label}}  {bar} {words}", _level_weight(level)))
    return rows or [Row("not known yet", "note")]


def _level_said(level: Level, found: Overview) -> str:
    used = amount(level.used_bytes, "bytes")
    if level.limit_bytes is None or level.share is None:
        return f"      {used}, without a limit"
    left = f"  full in {duration(level.seconds_left)}" if level.seconds_left is not None else ""
    left = "  full" if level.share >= 1 else left
    said = f"{level.share:4.0%}  {used} of {amount(level.limit_bytes, 'bytes')} {_of(level)}".rstrip()
    return f"{said}{left}{_card(level, found)}"


def _card(level: Level, found: Overview) -> str:
    gpu = next((one for one in found.gpus if level.what == f"GPU {one.index}"), None)
    if gpu is None or not found.is_live:
        return ""
    busy = f"  {gpu.utilisation_percent:.0f}% busy" if gpu.utilisation_percent is not None else ""
    return busy + (f"  {gpu.temperature_celsius:.0f} °C" if gpu.temperature_celsius is not None else "")


def _of(level: Level) -> str:
    return "" if level.limit_is in ("of the machine", "of the GPU") and level.what != "job" else f"({level.limit_is})"


def _level_weight(level: Level) -> Weight | None:
    if level.seconds_left is not None:
        return "bad" if level.seconds_left < SOON_S else "warn"
    # Frameworks take a whole GPU at once: that is healthy.
    return "warn" if level.share is not None and level.share >= TIGHT and not level.what.startswith("GPU") else None


# -- loss and gradient


def curve_rows(found: Overview, canvas: Canvas) -> list[Row]:
    curves = [(what, curve) for what, curve in (("loss", found.loss), ("gradient", found.gradient_norm)) if curve]
    height = (
        max(1, min(MOST_HEIGHT, canvas.height // max(1, len(curves)) - 1)) if canvas.height > 2 * len(curves) else 1
    )
    rows = [row for what, curve in curves for row in _tall_curve(what, curve, height, canvas)]
    if found.gradient_norm is None and found.gradient_norm_missing:
        rows.append(Row(f"gradient   not known: {found.gradient_norm_missing}", "note"))
    return rows or [Row("no loss seen", "note")]


def _tall_curve(what: str, curve: Curve, height: int, canvas: Canvas) -> list[Row]:
    """With its highest and lowest value where there is room for them."""
    if height < 3:
        return [_curve_row(what, _number(curve.value), curve, "", canvas)]
    known = [value for _, value in curve.points if math.isfinite(value)]
    extremes = [_number(max(known)), _number(min(known))] if known else ["", ""]
    labels = [f"{what:<9}  {_number(curve.value)}", "", *[""] * (height - 3), ""]
    labels[1], labels[-1] = f"  high     {extremes[0]}", f"  low      {extremes[1]}"
    room = min(MOST_WIDTH, canvas.width - LABEL)
    lines = drawn(over_time(curve.points, room), height, canvas.symbols.heights)
    weight = _curve_weight(curve)
    return [Row(f"{label:<{LABEL}}{line}".rstrip(), weight) for label, line in zip(labels, lines, strict=True)]


def _curve_row(what: str, value: str, course: Curve | None, after: str, canvas: Canvas) -> Row:
    left = f"{what:<9}  {value:<9} "
    room = min(MOST_WIDTH, canvas.width - len(left) - (len(after) + 2 if after else 0))
    line = drawn(over_time(course.points if course is not None else (), room), 1, canvas.symbols.heights)[0]
    return Row(f"{left}{line:<{max(0, room)}}  {after}".rstrip(), _curve_weight(course))


def _curve_weight(curve: Curve | None) -> Weight | None:
    return "bad" if curve is not None and not math.isfinite(curve.value) else None


def _number(value: float) -> str:
    return f"{value:.4g}" if math.isfinite(value) else str(value)


# -- what happened, and who is there


def moment_rows(moments: Iterable[Moment], canvas: Canvas) -> list[Row]:
    """What somebody should know is told whole, what is only noted in one line."""
    listed = list(moments)
    long = bool(listed) and max(one.at for one in listed) - min(one.at for one in listed) >= DAY_S / 2
    when = "%m-%d %H:%M:%S" if long else "%H:%M:%S"
    rows: list[Row] = []
    for moment in listed:
        times = f" ({moment.times} in a row)" if moment.times > 1 else ""
        begin = f"{time.strftime(when, time.localtime(moment.at))} {canvas.symbols.marks[moment.weight]} "
        if moment.weight == "note":
            rows.append(Row(cut(f"{begin}{moment.text}{times}", canvas), moment.weight))
        else:
            lines = textwrap.wrap(f"{moment.text}{times}", max(20, canvas.width - len(begin)))
            rows += [Row((" " * len(begin) if i else begin) + line, moment.weight) for i, line in enumerate(lines)]
    return rows or [Row("nothing yet", "note")]


def process_rows(found: Overview, look_at: LookAt, canvas: Canvas) -> list[Row]:
    """`look_at` is asked only for processes of a live run. Of another machine's none is seen."""
    if not found.is_live:
        return [Row("none: the run has ended", "note")]
    listed = [(depth, process, look_at(process.pid)) for depth, process in processes_in_order(found.processes)]
    elsewhere = all(seen is None for _, _, seen in listed)
    rows = [
        _process_row(depth, process, seen, canvas) for depth, process, seen in listed if seen is not None or elsewhere
    ]
    if not found.all_processes_listed:
        rows.append(Row("later ones are not listed: too many came and went", "note"))
    return rows or [Row("none seen yet", "note")]


def _process_row(depth: int, process: Process, seen: ProcessState | None, canvas: Canvas) -> Row:
    size = amount(seen.rss_bytes, "bytes") if seen is not None else "?"
    state = seen.state if seen is not None else "?"
    weight: Weight | None = "warn" if state in ("stopped", "dead", "stuck") else None
    return Row(cut(f"{process.pid:>7} {size:>8}  {state:<8} {'  ' * depth}{process.command}", canvas), weight)


def processes_title(found: Overview) -> str:
    if not found.is_live:
        return "processes"
    cores = f", {found.cores:.1f} cores busy" if found.cores is not None else ""
    return f"processes: {len(found.processes)}{cores}"
