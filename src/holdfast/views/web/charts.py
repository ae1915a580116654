"""Which signals make which chart. What no chart of ours knows is in the charts of all the rest, by room and unit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from holdfast.vocabulary import unit_of


@dataclass(frozen=True, slots=True)
class Chart:
    """`limits` are drawn as dashes. `*` stands for a number, as in `gpu*.memory_used_bytes`."""

    id: str
    title: str
    unit: str
    signals: tuple[str, ...]
    limits: tuple[str, ...] = ()


CHARTS = (
    Chart("loss", "Loss", "", ("train.loss",)),
    Chart("gradient", "Gradient norm", "", ("train.gradient_norm",)),
    Chart("step", "Time of a step", "s", ("train.step_s",)),
    Chart("waiting", "Share of it spent waiting for data", "ratio", ("train.wait_ratio",)),
    Chart(
        "job", "Memory of the job", "bytes", ("job.rss_bytes", "job.held_bytes", "cgroup.memory_working_bytes"),
        ("job.memory_budget_bytes", "cgroup.memory_limit_bytes"),
    ),
    Chart("host", "Memory available on the machine", "bytes", ("host.memory_available_bytes",), ("host.memory_total_bytes",)),
    Chart("gpu", "Memory of the GPUs", "bytes", ("gpu*.memory_used_bytes",), ("gpu*.memory_total_bytes",)),
    Chart("gpu-use", "Use of the GPUs", "percent", ("gpu*.utilisation_percent",)),
    Chart("gpu-heat", "Temperature of the GPUs", "celsius", ("gpu*.temperature_celsius",), ("gpu*.temperature_limit_celsius",)),
    Chart("cpu", "Processor cores wanted", "count", ("job.cpu_wanting_count",), ("job.cores_count",)),
)  # fmt: skip
LABELS = {
    "train.loss": "loss",
    "train.gradient_norm": "gradient norm",
    "train.step_s": "step",
    "train.wait_ratio": "waiting",
    "job.rss_bytes": "resident",
    "job.held_bytes": "held",
    "cgroup.memory_working_bytes": "control group",
    "job.memory_budget_bytes": "budget",
    "cgroup.memory_limit_bytes": "limit",
    "host.memory_available_bytes": "available",
    "host.memory_total_bytes": "all there is",
    "job.cpu_wanting_count": "wanted",
    "job.cores_count": "cores",
}
ROOMS = {"train": "Training", "job": "Job", "cgroup": "Control group", "host": "Machine", "pressure": "Pressure",
         "disk": "Disks", "gpu": "GPUs", "shm": "Shared memory", "net": "Network"}  # fmt: skip


def charts(names: Iterable[str], has_values: Callable[[str], bool]) -> list[dict[str, Any]]:
    """Those that have something to show. `more`: drawn only when somebody opens them."""
    there = sorted(name for name in names if has_values(name))
    drawn: set[str] = set()
    found = []
    for chart in CHARTS:
        signals = [name for pattern in chart.signals for name in there if _is(pattern, name)]
        if signals:
            limits = [name for pattern in chart.limits for name in there if _is(pattern, name)]
            drawn.update(signals, limits)
            found.append(_made(chart.id, chart.title, chart.unit, signals, limits, more=False))
    rest: dict[tuple[str, str], list[str]] = {}
    for name in there:
        if name not in drawn:
            rest.setdefault((_room(name), unit_of(name)), []).append(name)
    for (room, unit), signals in sorted(rest.items()):
        title = f"{ROOMS.get(room, room)}{f', {unit}' if unit else ''}"
        found.append(_made(f"more-{room}-{unit}", title, unit, signals, [], more=True))
    return found


def _made(id: str, title: str, unit: str, signals: list[str], limits: list[str], *, more: bool) -> dict[str, Any]:
    lines = [{"signal": name, "label": _label(name, more), "limit": name in limits} for name in (*signals, *limits)]
    return {"id": id, "title": title, "unit": unit, "lines": lines, "more": more}


def _label(name: str, more: bool) -> str:
    if name.startswith("gpu"):
        gpu, _, what = name.partition(".")
        return name if more else "limit" if "limit" in what or "total" in what else gpu
    return name if more else LABELS.get(name, name)


def _is(pattern: str, name: str) -> bool:
    before, star, after = pattern.partition("*")
    if not star:
        return pattern == name
    return name.startswith(before) and name.endswith(after) and name[len(before) : len(name) - len(after)].isdigit()


def _room(name: str) -> str:
    return name.partition(".")[0].partition("[")[0].rstrip("0123456789")
