"""A limit was reached when the script failed: disk, /dev/shm, open files, processes.

Each says only that the resource was used up; together with the script's own error it becomes certain.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

from holdfast.detectors.endings import ENDING, ending, last_moments
from holdfast.units import amount
from holdfast.vocabulary import Detail, Evidence, Finding, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    full_ratio: float = 0.02  # of /dev/shm is free: full
    files_ratio: float = 0.95  # of the limit on open files
    before_s: float = 30.0  # the end


@reads(ENDING, events=["disk.full"])
def find_disk(window: Window) -> Finding | None:
    if not _failed(window):
        return None
    full = [event for event in window.events("disk.full") if event.at > last_moments(window)]
    if not full:
        return None
    where = str(full[0].data["mountpoint"])
    evidence = tuple(
        Evidence(
            f"{event.data['mountpoint']} is full: {amount(float(event.data['free_bytes']), 'bytes')} of "
            f"{amount(float(event.data['total_bytes']), 'bytes')} left",
            "telemetry",
            event.at,
            float(event.data["free_bytes"]),
        )
        for event in {event.data["mountpoint"]: event for event in full}.values()
    )
    return Finding("disk-full", 0.55, evidence, {Detail.WHERE: where}, headline=f"The disk is full ({where})")


@reads(ENDING, latest=["shm.total_bytes"], course=["shm.free_bytes"])
def find_shared_memory(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    how, total = ending(window), window.value("shm.total_bytes")
    if how is None or how.code == 0 or not total:
        return None
    lowest = min(
        (
            sample
            for sample in window.series("shm.free_bytes", how.at - thresholds.before_s)
            if sample.value is not None
        ),
        key=lambda sample: sample.value or 0.0,
        default=None,
    )
    if lowest is None or lowest.value is None or lowest.value > max(thresholds.full_ratio * total, 1 << 20):
        return None
    text = f"/dev/shm was full: {amount(lowest.value, 'bytes')} of {amount(total, 'bytes')} left"
    return Finding(
        "shared-memory-exhausted",
        0.6 if how.signal == signal.SIGBUS else 0.45,
        (Evidence(text, "telemetry", lowest.at, lowest.value),),
        {"size": amount(total, "bytes")},
    )


@reads(ENDING, latest=["job.open_files_count", "job.open_files_limit_count"])
def find_open_files(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    used, limit = window.last("job.open_files_count"), window.value("job.open_files_limit_count")
    if not _failed(window) or used is None or not used.value or not limit:
        return None
    if used.value < thresholds.files_ratio * limit:
        return None
    text = f"a process of the job had {used.value:.0f} files open; its limit is {limit:.0f}"
    return Finding("too-many-open-files", 0.5, (Evidence(text, "telemetry", used.at, used.value),))


@reads(ENDING, latest=["cgroup.pids_limit_count"], course=["cgroup.pids_refused_count"])
def find_processes(window: Window) -> Finding | None:
    refused, last = (
        window.rise("cgroup.pids_refused_count", last_moments(window)),
        window.last("cgroup.pids_refused_count"),
    )
    if not _failed(window) or refused <= 0 or last is None:
        return None
    limit = window.value("cgroup.pids_limit_count")
    text = f"the cgroup refused {refused:.0f} new threads or processes" + (
        f"; its limit is {limit:.0f}" if limit else ""
    )
    return Finding("too-many-processes", 0.7, (Evidence(text, "telemetry", last.at, refused),))


def _failed(window: Window) -> bool:
    """By itself: a script ended by SIGKILL did not fail at one of these limits."""
    how = ending(window)
    return how is not None and how.code != 0 and how.signal != signal.SIGKILL
