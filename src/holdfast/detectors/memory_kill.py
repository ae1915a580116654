"""The kernel killed the job for memory: at a container's limit, or because the machine had none left."""

from __future__ import annotations

import math
import signal
from dataclasses import dataclass

from holdfast.detectors.endings import (
    ENDING,
    KERNEL_KILLS,
    KILL_COUNTS,
    Ending,
    KernelKill,
    ending,
    kernel_kills,
    kills_may_be_ours,
    last_moments,
)
from holdfast.detectors.held_memory import HELD, held_series, most_held
from holdfast.units import amount
from holdfast.vocabulary import JOB_GROUP_PREFIX, Detail, Evidence, Finding, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    near_limit_ratio: float = 0.8  # the last reading may be a second older than the kill
    host_short_ratio: float = 0.08  # of the machine's memory available: short of it


CONTAINER = "container-memory-limit"
HOST = "host-memory-exhausted"


@reads(
    ENDING,
    KERNEL_KILLS,
    KILL_COUNTS,
    HELD,
    latest=[
        "cgroup.memory_limit_bytes", "cgroup.memory_peak_bytes", "host.memory_available_bytes",
        "host.memory_total_bytes", "job.memory_budget_bytes",
    ],
    course=["cgroup.memory_working_bytes", "cgroup.limit_hit_count", "host.oom_kill_count"],
)  # fmt: skip
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    how = ending(window)
    if how is not None and how.code == 0:
        return None
    kills, counted = kernel_kills(window), _counted(window)
    if not kills and not (counted and kills_may_be_ours(window)):
        return _short_of_memory(window, how, thresholds)
    evidence = [kill.evidence for kill in kills[:1]] + counted[: 1 if kills else 2] + _state(window)
    if how is not None:
        evidence.insert(0, how.evidence())
    cause = _where(window, kills, thresholds)
    confidence = 0.97 if kills else _by_counters(window, how)
    headline = _headline(window, cause)
    budget = window.value("job.memory_budget_bytes")
    if cause == HOST and budget and at_own_limit(kills):
        headline = f"Killed by the kernel at the job's memory budget of {amount(budget, 'bytes')}"
        evidence.append(Evidence(f"the job's memory budget is {amount(budget, 'bytes')}", "telemetry", None, budget))
    return Finding(cause, confidence, tuple(evidence), _details(window), headline=headline)


def _by_counters(window: Window, how: Ending | None) -> float:
    """Counters name no process. Those of the job's group are most likely about the job; the machine's may be about any."""
    killed = how is None or how.signal == signal.SIGKILL
    if window.rise("cgroup.oom_kill_count", last_moments(window)) > 0:
        return 0.93 if killed else 0.7
    return 0.75 if killed else 0.4


def _counted(window: Window) -> list[Evidence]:
    counted = []
    for name, text in (
        ("cgroup.oom_kill_count", "the cgroup's oom_kill counter moved by {:.0f}"),
        ("host.oom_kill_count", "oom_kill in /proc/vmstat moved by {:.0f}"),
    ):
        rise, last = window.rise(name, last_moments(window)), window.last(name)
        if rise > 0 and last is not None:
            counted.append(Evidence(text.format(rise), "telemetry", last.at, rise))
    return counted


def _where(window: Window, kills: list[KernelKill], thresholds: Thresholds) -> str:
    if at_own_limit(kills):
        return CONTAINER if _near_limit(window, thresholds) or _limit_binds(window) else HOST
    constraints = {kill.constraint for kill in kills if kill.constraint}
    if "CONSTRAINT_MEMCG" in constraints:
        return CONTAINER
    if constraints:
        return HOST
    limit = window.value("cgroup.memory_limit_bytes")
    if limit and (window.rise("cgroup.limit_hit_count") > 0 or _near_limit(window, thresholds)):
        return CONTAINER
    available, total = window.value("host.memory_available_bytes"), window.value("host.memory_total_bytes")
    if available is not None and total and available > 2 * thresholds.host_short_ratio * total and limit:
        return CONTAINER
    return HOST


def at_own_limit(kills: list[KernelKill]) -> bool:
    """At the limit that Holdfast sets for the job's own group, just below what binds it.

    That is a container's limit, the budget or the machine's memory. A limit further up is reported as such.
    """
    return any(f"/{JOB_GROUP_PREFIX}" in kill.limited for kill in kills)


def _near_limit(window: Window, thresholds: Thresholds) -> bool:
    limit, working = window.value("cgroup.memory_limit_bytes"), _highest(window, "cgroup.memory_working_bytes")
    return bool(limit) and (working or 0.0) > thresholds.near_limit_ratio * (limit or 0.0)


def _limit_binds(window: Window) -> bool:
    """At the last look, which may be long before a sudden rise, the container had less room than machine and budget."""
    limit, working = window.value("cgroup.memory_limit_bytes"), window.value("cgroup.memory_working_bytes")
    available, budget = window.value("host.memory_available_bytes"), window.value("job.memory_budget_bytes")
    if not limit or working is None or available is None:
        return False
    held = [sample.value or 0.0 for sample in held_series(window)[-1:]]
    left = budget - sum(held) if budget else available
    return limit - working < min(available, left)


def _short_of_memory(window: Window, how: Ending | None, thresholds: Thresholds) -> Finding | None:
    """SIGKILL or SIGTERM while memory was nearly gone, and the kernel's counters at rest: earlyoom and its like."""
    if how is None or how.signal not in (signal.SIGKILL, signal.SIGTERM):
        return None
    available, total = window.last("host.memory_available_bytes"), window.value("host.memory_total_bytes")
    if available is None or available.value is None or not total:
        return None
    if available.value > thresholds.host_short_ratio * total:
        return None
    text = f"only {amount(available.value, 'bytes')} of {amount(total, 'bytes')} RAM were available just before"
    note = Evidence(
        "no kernel kill was counted: a memory guard such as earlyoom or systemd-oomd may have done it", "exit"
    )
    return Finding(
        HOST,
        0.6,
        (how.evidence(), Evidence(text, "telemetry", available.at, available.value), note),
        headline="Killed while the machine was almost out of memory",
    )


def _state(window: Window) -> list[Evidence]:
    state = []
    limit, peak = window.last("cgroup.memory_limit_bytes"), window.value("cgroup.memory_peak_bytes")
    peak = peak or _highest(window, "cgroup.memory_working_bytes")
    if limit is not None and limit.value and peak is not None:
        text = f"the container's memory peaked at {amount(peak, 'bytes')}; its limit is {amount(limit.value, 'bytes')}"
        state.append(Evidence(text, "telemetry", limit.at, peak))
    available, total = window.last("host.memory_available_bytes"), window.value("host.memory_total_bytes")
    if available is not None and available.value is not None and total:
        text = (
            f"the machine had {amount(available.value, 'bytes')} of {amount(total, 'bytes')} available at the last look"
        )
        state.append(Evidence(text, "telemetry", available.at, available.value))
    most = most_held(window)
    if most is not None and most.value:
        text = f"the job's processes held up to {amount(most.value, 'bytes')}"
        state.append(Evidence(text, "telemetry", None, most.value))
    return state


def _headline(window: Window, cause: str) -> str:
    limit = window.value("cgroup.memory_limit_bytes")
    if cause == CONTAINER:
        at = f" of {amount(limit, 'bytes')}" if limit else ""
        return f"Killed by the kernel at the container's memory limit{at}"
    return "Killed by the kernel: the machine ran out of memory"


def _details(window: Window) -> dict[str, str]:
    """A round limit to try next: twice what it had, in whole GiB or quarters of one."""
    limit, most = window.value("cgroup.memory_limit_bytes"), most_held(window)
    wanted = max(limit or 0, (most.value or 0) if most is not None else 0) * 2
    if not wanted:
        return {}
    gib = math.ceil(wanted / (1 << 30))
    return {Detail.TWICE: f"{gib}g" if wanted > 1 << 30 else f"{math.ceil(wanted / (256 << 20)) * 256}m"}


def _highest(window: Window, name: str) -> float | None:
    return max((sample.value for sample in window.series(name) if sample.value is not None), default=None)
