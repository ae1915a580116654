"""What a recorded run shows not to have been the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.vocabulary import Diagnosis, Window

ROOM = 0.1  # of the whole was always left


def ruled_out(window: Window, diagnosis: Diagnosis) -> list[str]:
    named = {cause.id for cause in (diagnosis.cause, *diagnosis.also) if cause and cause.confidence > 0.3}
    return [text for cause, text in _reasons(window) if cause not in named]


def _reasons(window: Window) -> Iterator[tuple[str, str]]:
    counters = [name for name in ("host.oom_kill_count", "cgroup.oom_kill_count") if window.last(name) is not None]
    if counters and not any(window.rise(name) > 0 for name in counters):
        yield "host-memory-exhausted", "A kill for memory: the kernel's counters did not move."
    yield from _room(
        window,
        "host.memory_available_bytes",
        "host.memory_total_bytes",
        "host-memory-exhausted",
        "The machine's memory",
    )
    for name in window.names("disk[", "].free_bytes"):
        where = name[len("disk[") : -len("].free_bytes")]
        yield from _room(window, name, f"disk[{where}].total_bytes", "disk-full", f"The disk {where}")
    yield from _room(window, "shm.free_bytes", "shm.total_bytes", "shared-memory-exhausted", "/dev/shm")
    used, limit = _extreme(window, "job.open_files_count", max), window.value("job.open_files_limit_count")
    if used is not None and limit and used < (1 - ROOM) * limit:
        yield "too-many-open-files", f"Open files: at most {used:.0f} of {limit:.0f}."
    if not window.events("signal.received") and window.event("run.start") is not None:
        yield "terminated", "A request to stop: no signal arrived at Holdfast."


def _room(window: Window, left: str, whole: str, cause: str, what: str) -> Iterator[tuple[str, str]]:
    lowest, total = _extreme(window, left, min), window.value(whole)
    if lowest is not None and total and lowest > ROOM * total:
        yield cause, f"{what}: at least {lowest / (1 << 30):.3g} of {total / (1 << 30):.3g} GiB were left."


def _extreme(window: Window, name: str, choose: Callable[[list[float]], float]) -> float | None:
    values = [sample.value for sample in window.series(name) if sample.value is not None]
    return choose(values) if values else None
