"""A leak in a loop whose steps are not counted: a JAX loop, or one that updates its weights by hand.

Without steps it is found by the stacks taken while memory rose: the same few lines of the script again and again,
computing, with about the same growth each second until memory was used up. Reading many files into memory looks the same
from outside, but its stacks show reading; building a model is over within seconds.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from holdfast.detectors import guard_stop, killed_while_loading, memory_kill
from holdfast.inside.library_paths import is_library
from holdfast.units import amount, duration
from holdfast.vocabulary import Event, Evidence, Finding, Window
from holdfast.windows import reads

CAUSE = "host-memory-leak"
# Library code that runs a model or computes its gradient, called from the script's own line.
COMPUTES = re.compile(
    r"jax[/\\]_src[/\\](?:pjit|api|dispatch|array|core|random|lax|numpy|interpreters|custom_derivatives|ad_util)"
    r"|torch[/\\](?:autograd|_tensor\.py|nn[/\\]functional)|torch[/\\]nn[/\\]modules[/\\]\w+\.py"
    r"|tensorflow[/\\]python[/\\](?:eager|ops)[/\\](?!\w*(?:dataset|iterator|init|parsing|io_ops))"
)
ARRAYS_FROM_DATA = re.compile(r"array_constructors|array_creation|device_put|from_numpy|constant_op")
SETS_UP = re.compile(r"\binit|create|build|restore|checkpoint|Embedding|initiali[sz]", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Thresholds:
    stacks: int = 8
    seconds: float = 8.0
    computing_ratio: float = 0.12
    loading_ratio: float = 0.2
    even_ratio: float = 0.7  # of the rises have a rate like that of the middle one
    alike: float = 3.0
    taken_ratio: float = 0.5  # of the room there was
    confidence: float = 0.7


@reads(
    memory_kill.find.reads,
    guard_stop.find.reads,
    latest=["train.steps_count", "cgroup.memory_limit_bytes", "host.memory_total_bytes"],
    events=["train.begun", "startup.stack"],
)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    killed = memory_kill.find(window) or guard_stop.find(window)
    if killed is None or killed.confidence < 0.5 or window.last("train.steps_count") is not None:
        return None
    if any(event.data.get("by") == "fit" for event in window.events("train.begun")):
        return None  # Keras's steps are counted: the first one was too big
    stacks = _of_the_trainer(window)
    line = _line(stacks)
    if line is None or len(stacks) < thresholds.stacks or stacks[-1].at - stacks[0].at < thresholds.seconds:
        return None
    if not _computing(stacks, thresholds) or not _steady(stacks, thresholds):
        return None
    grown, rate = _held(stacks[-1]) - _held(stacks[0]), _middle_rate(stacks)
    limit = window.value("cgroup.memory_limit_bytes") or window.value("host.memory_total_bytes")
    if limit and grown < thresholds.taken_ratio * (limit - _held(stacks[0])):
        return None
    took = stacks[-1].at - stacks[0].at
    over = (
        f"memory grew {amount(rate, 'bytes')}/s for {duration(took)} without a pause: {amount(_held(stacks[0]), 'bytes')}, "
        f"then {amount(_held(stacks[-1]), 'bytes')}"
    )
    where = f"all the while the script was in one loop, at {line}"
    evidence = (
        Evidence(over, "telemetry", stacks[-1].at, rate),
        Evidence(where, "telemetry", stacks[-1].at),
    )
    headline = f"Memory leaks: {amount(rate, 'bytes')} more every second, in the loop at {line.partition(':')[0]}"
    return Finding(CAUSE, thresholds.confidence, evidence, headline=headline)


def _of_the_trainer(window: Window) -> list[Event]:
    """Of the process with most stacks."""
    by_pid: dict[object, list[Event]] = {}
    for event in window.events("startup.stack"):
        by_pid.setdefault(event.data.get("pid"), []).append(event)
    return max(by_pid.values(), key=len, default=[])


def _held(event: Event) -> float:
    return float(event.data["held_bytes"])


def _own(event: Event) -> list[str]:
    """The script's own frames, innermost first."""
    frames = [f for f in event.data.get("frames", ()) if not is_library(str(f.get("file", "")))]
    return [f"{f['file']}:{f['line']} in {f['function']}: {f.get('code', '')}" for f in frames]


def _line(stacks: Sequence[Event]) -> str | None:
    """The line it was at most often, in a function that is in nearly all stacks."""
    functions: dict[str, int] = {}
    lines: dict[str, int] = {}
    for event in stacks:
        own = _own(event)
        for function in {line.partition(":")[0] + line.partition(" in ")[2].partition(":")[0] for line in own}:
            functions[function] = functions.get(function, 0) + 1
        for line in own[:1]:
            lines[line] = lines.get(line, 0) + 1
    if max(functions.values(), default=0) < 0.9 * len(stacks):
        return None
    return max(lines, key=lambda line: lines[line], default=None)


def _computing(stacks: Sequence[Event], thresholds: Thresholds) -> bool:
    computing = reading = setting_up = 0
    for event in stacks:
        files = [str(frame.get("file", "")) for frame in event.data.get("frames", ())]
        runs = any(COMPUTES.search(file) for file in files) and not any(ARRAYS_FROM_DATA.search(f) for f in files)
        computing += runs or killed_while_loading.place_of(event.data.get("frames", ())) == killed_while_loading.STEP
        reading += any(killed_while_loading.HANDLES_DATA.search(file) for file in files)
        reading += bool(not runs and any(killed_while_loading.LOADING_WORDS.search(line) for line in _own(event)[:1]))
        setting_up += any(SETS_UP.search(line) for line in _own(event)[:1])
    share = len(stacks)
    return (
        computing >= max(2.0, thresholds.computing_ratio * share)
        and reading <= thresholds.loading_ratio * share
        and setting_up <= thresholds.loading_ratio * share
    )


def _rates(stacks: Sequence[Event]) -> list[float]:
    return [(_held(after) - _held(before)) / max(after.at - before.at, 0.05) for before, after in pairwise(stacks)]


def _middle_rate(stacks: Sequence[Event]) -> float:
    return median(_rates(stacks))


def _steady(stacks: Sequence[Event], thresholds: Thresholds) -> bool:
    rates, middle = _rates(stacks), _middle_rate(stacks)
    alike = [rate for rate in rates if middle / thresholds.alike <= rate <= middle * thresholds.alike]
    return middle > 0 and len(alike) >= thresholds.even_ratio * len(rates)
