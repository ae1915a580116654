"""What memory ran out on, told apart by what was going on: each has a remedy of its own.

The cause says where memory ended (the container, the machine, the card). This says why it ended then: evaluation needs
more than training, a batch is longer than all before it, the batch was too big from the first step, another process took
the card, or what is free is in pieces. A leak is a cause of its own, and stands before all of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from holdfast.causes import CAUSES
from holdfast.recorded_events import KeptByInput
from holdfast.vocabulary import Evidence, Finding, Window

FIRST_STEPS = 2
LONGER = 1.1  # than all before
OTHERS_RATIO = 0.25  # of the card, taken while this run trained
PIECES_RATIO = 0.25  # of the card, reserved and not in use
CONTEXT_BYTES = 1 << 30  # CUDA's own: up to some hundred MiB a process
FULL_RATIO = 0.9
A_GUESS = 0.45  # a leak of native code's own would look the same; a cache is far more common
WARM_UP_STEPS, LEAST_STEPS = 3, 30
LEAST_RISE_BYTES = 128 << 20
KEPT_RATIO = 0.3  # of what the job held: a buffer of the input's that is as large is worth a remedy of its own
A_BATCH = (0.85, 1.35)  # of what it takes; labels and the allocator take some more
VALUE_BYTES = (1, 2, 4, 8)
MIB = 1 << 20
GIB = 1 << 30


def with_circumstances(window: Window, findings: Iterable[Finding]) -> list[Finding]:
    found = []
    filled, kept = _filled_by_the_input(window) is not None, _kept_by_the_input(window) is not None
    for finding in findings:
        nobody_holds_it = finding.growth is None or not finding.growth.holder
        if finding.cause == "host-memory-leak" and (filled or (kept and nobody_holds_it)):
            finding = replace(finding, confidence=min(finding.confidence, A_GUESS))  # noqa: PLW2901
        if CAUSES[finding.cause].ran_out:
            finding = _with_refusal(window, _with_kind(window, finding))  # noqa: PLW2901
            if finding.cause == "gpu-memory-exhausted":
                found += [other for other in (_others(window), _in_pieces(window)) if other is not None]
        found.append(finding)
    return found


def _with_kind(window: Window, finding: Finding) -> Finding:
    on_the_host = (_kept_by_the_input, _filled_by_the_input) if finding.cause != "gpu-memory-exhausted" else ()
    for look in (*on_the_host, _while_evaluating, _longer_than_before, _from_the_first_step):
        kind = look(window)
        if kind is not None:
            name, text, at = kind
            details: dict[str, Any] = {**finding.details, name: True}
            return replace(finding, evidence=(*finding.evidence, Evidence(text, "telemetry", at)), details=details)
    return finding


def _with_refusal(window: Window, finding: Finding) -> Finding:
    refused = window.event("rescue.refused")
    if refused is None:
        return finding
    text = f"the batch was not done in smaller pieces: {refused.data.get('reason', 'no reason was given')}"
    return replace(finding, evidence=(*finding.evidence, Evidence(text, "telemetry", refused.at)))


Kind = tuple[str, str, float] | None


def _kept_by_the_input(window: Window) -> Kind:
    """A buffer of tf.data's that takes a good part of what the job held, by the sizes that the pipeline declares."""
    kept = KeptByInput.largest(window)
    held = max((sample.value for sample in window.series("job.held_bytes") if sample.value is not None), default=None)
    if kept is None or held is None or kept.bytes < KEPT_RATIO * held:
        return None
    text = (
        f"{kept.call} keeps up to {kept.elements:,} elements of {_size(kept.element_bytes)}: {_gib(kept.bytes)}; the job "
        f"held {_gib(held)} at most"
    )
    return f"input {kept.what}", text, kept.at


def _filled_by_the_input(window: Window) -> Kind:
    """Every step of the first epoch took what a batch takes, and no object of Python's grew: the pipeline keeps its rows.

    Measured: `dataset.cache()` of rows of 256 KiB in batches of 8 grew 1.05 batches a step. A list that keeps every
    batch grows as fast, and is found by a look at what Python holds.
    """
    looks, epochs = (
        window.events("examined"),
        {s.value for s in window.series("train.epoch_count") if s.value is not None},
    )
    if not looks or any(event.data.get("growing") or event.data.get("partial") for event in looks) or len(epochs) != 1:
        return None
    batch, rise = _values(window), _rise_a_step(window)
    if not batch or rise is None:
        return None
    per_step, steps, at = rise
    if not any(A_BATCH[0] <= per_step / (batch * size) <= A_BATCH[1] for size in VALUE_BYTES):
        return None
    text = (
        f"memory grew {per_step / MIB:.3g} MiB a step over {steps} steps of the first epoch, as much as a batch takes, and "
        "nothing of Python's grew: the input pipeline keeps what it reads, as dataset.cache() does"
    )
    return "input", text, at


def _values(window: Window) -> float:
    """Of one batch."""
    last = window.event("train.batch") or window.event("train.longest")
    shape = (last.data.get("shape") or ()) if last is not None else ()
    return _row(shape) * max(1, int(shape[0])) if shape else 0.0


def _rise_a_step(window: Window) -> tuple[float, int, float] | None:
    """Bytes a step, over how many, and until when; where memory rose evenly and by much."""
    course = [
        (sample.step, sample.value, sample.at)
        for sample in window.series("train.rss_bytes")
        if sample.value is not None and sample.step is not None and sample.step > WARM_UP_STEPS
    ]
    if len(course) < 3 or course[-1][0] - course[0][0] < LEAST_STEPS:
        return None
    (first, held, _), (last, end, at) = course[0], course[-1]
    middle = min(course, key=lambda point: abs(point[0] - (first + last) / 2))
    before, after = middle[1] - held, end - middle[1]
    if end - held < LEAST_RISE_BYTES or not 0.5 < before / max(1.0, after) < 2.0:
        return None
    return (end - held) / (last - first), int(last - first), at


def _while_evaluating(window: Window) -> Kind:
    phases = window.events("train.phase")
    rescued = [
        event for event in window.events("rescue.caught", "rescue.foreseen") if event.data.get("where") == "evaluate"
    ]
    if rescued:
        return (
            "evaluation",
            "evaluation needs more memory than training: it is evaluation that did not fit",
            rescued[-1].at,
        )
    steps = _steps(window)
    if not phases or phases[-1].data.get("phase") != "validate" or not steps:
        return None
    text = f"memory ran out while evaluating, after {steps} training step{'' if steps == 1 else 's'} that fitted"
    return "evaluation", text, phases[-1].at


def _longer_than_before(window: Window) -> Kind:
    """The largest batch came last, and others had been trained on before."""
    batches = [(_row(event.data.get("shape")), event) for event in window.events("train.longest")]
    steps = _steps(window)
    if len(batches) < 2 or steps <= FIRST_STEPS:
        return None
    (before, _), (size, last) = batches[-2], batches[-1]
    if size < LONGER * before or int(last.data.get("step", 0)) < steps:
        return None
    shape = "×".join(str(number) for number in last.data.get("shape", ()))
    text = f"the last batch was {shape}: each row {size / before:.1f} times as long as the longest before it"
    return "longer", text, last.at


def _from_the_first_step(window: Window) -> Kind:
    began = [event for event in window.events("train.phase") if event.data.get("phase") in ("compile", "train")]
    steps = _steps(window)
    if not began or steps > FIRST_STEPS:
        return None
    counted = "1 step was" if steps == 1 else f"{steps} steps were"
    done = f"only {counted} finished" if steps else "no step was ever finished"
    return "batch", f"{done}: the batch itself is too big", began[-1].at


def _others(window: Window) -> Finding | None:
    """The card filled up, and not by us."""
    for card in _cards(window):
        used, total = window.last(f"{card}.memory_used_bytes"), window.value(f"{card}.memory_total_bytes")
        first = next((s.value for s in window.series(f"{card}.memory_used_bytes") if s.value is not None), None)
        mine = window.value(f"{card}.job_memory_bytes")
        if mine is None:
            reserved = window.value("train.reserved_bytes")
            mine = None if reserved is None else reserved + CONTEXT_BYTES
        if used is None or used.value is None or first is None or not total or mine is None:
            continue
        others = used.value - mine
        if used.value < FULL_RATIO * total or others < OTHERS_RATIO * total:
            continue
        grown = used.value - first
        came = "took" if grown > mine + OTHERS_RATIO * total / 2 else "held"
        text = f"of the card's {_gib(total)}, {_gib(used.value)} were in use and only {_gib(mine)} of them by this run"
        headline = f"Another process {came} {_gib(others)} of the GPU's {_gib(total)}"
        evidence = (Evidence(text, "telemetry", used.at, others), *_by_name(window, card))
        return Finding("gpu-memory-held-by-others", 0.86, evidence, headline=headline)
    return None


def _by_name(window: Window, card: str) -> list[Evidence]:
    """Who else was on the card, as it was told last. In a container the driver gives the host's ids, which name nobody here."""
    told = [event for event in window.events("gpu.others") if f"gpu{event.data.get('index')}" == card]
    if told:
        named = [
            f"{one.get('name')} ({one.get('pid')}) had {_gib(one['bytes'])}"
            for one in told[-1].data.get("processes", ())
            if one.get("bytes")
        ]
        return [Evidence(f"on the card beside this run: {', '.join(named)}", "gpu", told[-1].at)] if named else []
    mine = window.last(f"{card}.job_memory_bytes")
    if mine is None or mine.value is not None or not mine.reason:
        return []
    text = "who holds it cannot be seen from within a container; nvidia-smi on the host names it"
    return [Evidence(text, "gpu", mine.at)]


def _in_pieces(window: Window) -> Finding | None:
    reserved, allocated = window.last("train.reserved_bytes"), window.value("train.allocated_bytes")
    peak = window.value("train.allocated_peak_bytes") or allocated
    if reserved is None or reserved.value is None or allocated is None or peak is None:
        return None
    for card in _cards(window):
        total = window.value(f"{card}.memory_total_bytes")
        idle = reserved.value - peak  # more than was ever in use at once: held for sizes that do not come again
        if not total or reserved.value < FULL_RATIO * total or idle < PIECES_RATIO * total:
            continue
        text = f"PyTorch had reserved {_gib(reserved.value)}, and never used more than {_gib(peak)} of it at once"
        headline = f"GPU memory is in pieces: {_gib(idle)} reserved and not in use"
        evidence = (Evidence(text, "telemetry", reserved.at, idle),)
        return Finding("gpu-memory-fragmented", 0.82, evidence, headline=headline)
    return None


def _cards(window: Window) -> list[str]:
    return [name.partition(".")[0] for name in window.names("gpu", ".memory_total_bytes")]


def _steps(window: Window) -> int:
    return int(window.value("train.steps_count") or 0)


def _row(shape: Any) -> float:
    size = 1.0
    for number in (shape or ())[1:]:
        size *= max(1, int(number))
    return size


def _size(value: float) -> str:
    return f"{value / MIB:.3g} MiB" if value >= MIB else f"{value / 1024:.3g} KiB"


def _gib(value: float) -> str:
    return f"{value / GIB:.3g} GiB"
