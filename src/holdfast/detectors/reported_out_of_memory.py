"""The training process reported that memory ran out and ended soon after, or the GPU's allocator failed after that.

Measured: after an out-of-memory error in code compiled by XLA, TensorFlow's allocator aborts the process in a later step or
at exit (`bfc_allocator.cc … Check failed`). That abort is the lack of memory, and no crash of its own.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from holdfast.detectors.endings import ALLOCATION_CRASHES, ENDING, Ending, ending
from holdfast.units import amount
from holdfast.vocabulary import Event, Evidence, Finding, Window
from holdfast.windows import reads

CAUSES = {"gpu": "gpu-memory-exhausted", "container": "container-memory-limit"}
OUTPUT_BYTES = 256 << 10  # a dump of the allocator's chunks takes thousands of lines
ALLOCATOR_BROKE = re.compile(rb"bfc_allocator\.cc:\d+\] ?(?:Non-OK-status|Check failed)[^\n]{0,120}")
GPU_RAN_OUT = re.compile(
    rb"Allocator \(GPU_\d+_bfc\) ran out of memory(?![^\n]{0,300}not a failure)[^\n]{0,120}"
    rb"|OOM when allocating[^\n]{0,200}(?:device:GPU|GPU_\d)[^\n]{0,60}"
    rb"|RESOURCE_EXHAUSTED: Out of memory[^\n]{0,120}"
    rb"|Out of memory while trying to allocate \d+ bytes[^\n]{0,60}"
)
NAMES_GPU = re.compile(r"GPU_\d+_bfc|device:GPU")


@dataclass(frozen=True, slots=True)
class Thresholds:
    caught_s: float = 60.0  # from an error that was caught to the crash it led to
    let_go_s: float = 600.0  # from one that was let go, to an abort at the interpreter's end
    raised_s: float = 60.0  # …to the end by the exception itself


@reads(ENDING, events=["rescue.caught", "rescue.needs"], output=True)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    how = ending(window)
    if how is None or how.code == 0:
        return None
    seen, confidence = _seen(window, how, thresholds)
    if not seen:
        return None
    told = last_told(window)
    named = any(NAMES_GPU.search(item.text) for item in seen)
    cause = CAUSES["gpu"] if told is None or named else CAUSES.get(device(told), "host-memory-exhausted")
    headline = ""
    if cause == CAUSES["gpu"] and how.signal in ALLOCATION_CRASHES:
        headline = "The GPU ran out of memory, and TensorFlow's allocator aborted the process"
    return Finding(cause, confidence, (how.evidence(), *seen), headline=headline)


def last_told(window: Window) -> Event | None:
    """The last report of the training process that memory ran out."""
    told = window.events("rescue.caught", "rescue.needs")
    return told[-1] if told else None


def device(told: Event | None) -> str:
    return str(told.data.get("of", "host")) if told is not None else ""


def _seen(window: Window, how: Ending, thresholds: Thresholds) -> tuple[list[Evidence], float]:
    """The evidence, and the confidence it gives."""
    told = last_told(window)
    on_gpu = device(told) == "gpu"
    if how.signal in ALLOCATION_CRASHES:
        said = _said_it_broke(window, on_gpu)
        patience_s = thresholds.let_go_s if told is not None and told.kind == "rescue.needs" else thresholds.caught_s
        recent = told is not None and on_gpu and 0 <= how.at - told.at < patience_s
        if told is not None and on_gpu and (recent or said):
            return [_in_words(told), *said], 0.93 if said else 0.88
        return said, 0.9
    if told is None or told.kind != "rescue.needs" or how.signal or how.at - told.at >= thresholds.raised_s:
        return [], 0.0
    return [_in_words(told)], 0.7


def _said_it_broke(window: Window, ran_out: bool) -> list[Evidence]:
    """The check in the allocator that failed, where memory on the GPU is known to have run out before."""
    for stream in window.streams():
        text = window.output(stream)[-OUTPUT_BYTES:]
        broke = ALLOCATOR_BROKE.search(text)
        before = GPU_RAN_OUT.search(text, 0, broke.start()) if broke else None
        if broke is not None and (before is not None or ran_out):
            found = [match for match in (before, broke) if match is not None]
            return [Evidence(match.group(0).decode("utf-8", "replace").strip(), stream) for match in found]
    return []


def _in_words(told: Event) -> Evidence:
    data = told.data
    if told.kind == "rescue.caught":
        text = f"out of memory was caught shortly before, at step {data.get('step', '?')}: {data.get('wanted', '')}"
        return Evidence(text.rstrip(": "), "telemetry", told.at)
    needed, limit = float(data.get("needed_bytes") or 0), float(data.get("limit_bytes") or 0)
    sizes = f" of {amount(needed, 'bytes')} with room for {amount(limit, 'bytes')}" if needed and limit else ""
    where = {"gpu": "the GPU", "container": "the container"}.get(device(told), "the host")
    text = f"a step{sizes} ran out of memory on {where}; in {data.get('k', '?')} micro-batches it would fit"
    return Evidence(text, "telemetry", told.at, needed or None)
