"""What a run that finished had to survive on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.diagnosis.errors import of_one_rank
from holdfast.fleet.findings import finding_of
from holdfast.fleet.first_stop import first_of
from holdfast.fleet.stories import starts, stories
from holdfast.recorded_events import RESTORED, MicroBatches, WentOn
from holdfast.vocabulary import Event, Evidence, Finding, Window

MIB = 1 << 20
TRACED = 0.6


def rescued(window: Window) -> Finding | None:
    """Out of memory that was caught in the step, or seen coming, and the batch done in smaller pieces."""
    caught, foreseen = window.event("rescue.caught"), window.event("rescue.foreseen")
    if caught is None and foreseen is None:
        return None
    first = min((event for event in (caught, foreseen) if event is not None), key=lambda event: event.at)
    evidence = [_what_happened(window.events(first.kind)[0])]
    where = first.data.get("where", "train")
    told = [event for event in window.events(MicroBatches.KIND) if event.data.get("where", where) == where]
    pieces = [MicroBatches.of(event).k for event in told]
    if pieces:
        text = f"it went on in {pieces[-1]} micro-batches with the same effective batch"
        evidence.append(Evidence(text, "telemetry", first.at, pieces[-1]))
    evidence += [
        Evidence(f"not the same as in one piece: {event.data.get('text', '')}", "telemetry", event.at)
        for event in window.events("rescue.disclosed")
    ]
    cause, where = _cause(window.events(first.kind)[0])
    headline = f"{where} was too small for a batch; it was trained in pieces"
    return Finding(cause, 0.92, tuple(evidence), headline=headline)


def went_on(window: Window, while_running: Sequence[Finding]) -> Finding | None:
    """A value that was not finite, after which it trained on from a good state."""
    if not window.events(WentOn.KIND):
        return None
    told = [finding for finding in while_running if finding.subject == WentOn.SUBJECT]
    traced = [finding for finding in told if finding.confidence >= TRACED]  # later, where it could not be at first
    return next(iter(traced or told), None)


def started_again(window: Window) -> Finding | None:
    """By the engine, which starts all ranks again when one has stopped: what that one stopped for, the last time."""
    before = starts(window)[:-1]
    first = first_of(stories(window, before[-1])) if before else None
    if first is None:
        return None
    told = finding_of(first)
    found = [told] if told is not None else of_one_rank(window, first, None)
    best = max(found, key=lambda finding: finding.confidence, default=None)
    if best is None:
        return None
    text = f"{first.story.joined.engine} started all ranks again{'' if len(before) == 1 else f', {len(before)} times'}"
    restored = sorted({int(event.data.get("step") or 0) for event in window.events(RESTORED)})
    went = Evidence(f"they went on from step {restored[-1]}" if restored else "they began anew", "telemetry")
    return replace(best, evidence=(*best.evidence, Evidence(text, "ranks"), went))


def _cause(first: Event) -> tuple[str, str]:
    if "gpu" in (first.data.get("of"), first.data.get("device")):
        return "gpu-memory-exhausted", "The GPU"
    if first.data.get("of") == "container":
        return "container-memory-limit", "The container's memory"
    return "host-memory-exhausted", "Host memory"


def _what_happened(first: Event) -> Evidence:
    data, step = first.data, first.data.get("step", "?")
    if first.kind == "rescue.caught":
        return Evidence(f"step {step} ran out of memory: {data.get('wanted', '')}".rstrip(": "), "telemetry", first.at)
    needed, left = int(data.get("needed_bytes") or 0), int(data.get("left_bytes") or 0)
    places = {"container": "its container", "machine": "the machine", "gpu": "the GPU", "card": "the GPU"}
    budget = "its GPU memory budget" if data.get("device") == "gpu" else "its memory budget"
    of = places.get(str(data.get("of")), budget)
    what = {"evaluate": "evaluation", "predict": "prediction"}.get(str(data.get("where")), f"step {step}")
    text = f"{what} on {data.get('rows', '?')} rows needs about {needed // MIB} MiB; {of} had {left // MIB} MiB left"
    return Evidence(text, "telemetry", first.at, needed)
