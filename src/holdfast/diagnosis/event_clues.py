"""What the kernel's log and the GPU driver told while a run was recorded, read by the rules for texts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from holdfast.causes import CAUSES
from holdfast.diagnosis.reading.clues import from_line
from holdfast.diagnosis.reading.kernel_log import of_xid
from holdfast.diagnosis.weighing import GUESS, at_most
from holdfast.vocabulary import Event, Evidence, Finding, Window

TOLD_BY = ("kernel.line", "gpu.xid", "gpu.lost")
OF_THE_CARD_ITSELF = frozenset(record.id for record in CAUSES.values() if record.xids and record.of_the_system)
ENDED_BY_XID = (
    "native-crash",
    "unhandled-exception",
)  # where the output speaks of a card, a fault of its may be behind it
SPOKEN_OF = re.compile(rb"CUDA|cuda|GPU|NCCL|CUDNN|cuBLAS|CUBLAS")
LAST_WORDS = 8000  # bytes
NEAR_THE_END_S = 120.0  # what a card or the kernel said long before did not end the run
LOST = 0.95


def find_in_events(window: Window) -> list[Finding]:
    """What counts for how the run ended."""
    end = window.event("script.exit") or window.event("aftermath")
    found = [_of_this_run(finding, window) for event in window.events(*TOLD_BY) for finding in _of(event)]
    if end is not None:
        found = [f if end.at - (f.evidence[0].at or end.at) <= NEAR_THE_END_S else at_most(f, GUESS) for f in found]
    return best_of_each(found)


def card_faults(window: Window) -> list[Finding]:
    """What was wrong with a card, however the run went."""
    found = [finding for event in window.events(*TOLD_BY) for finding in _of(event)]
    return best_of_each([finding for finding in found if finding.cause in OF_THE_CARD_ITSELF])


def with_unseen(window: Window, findings: Sequence[Finding]) -> list[Finding]:
    """What the driver may have reported where nobody could read it, beside what an Xid would explain."""
    cards = [event for event in window.events("gpu.found") if event.data.get("xids") is False]
    kernel = [event for event in window.events("probe.missing") if event.data.get("probe") == "kernel_log"]
    if not cards or not kernel:
        return list(findings)
    index, reason = cards[0].data.get("index", "?"), kernel[0].data.get("reason", "the kernel log cannot be read")
    text = f"whether the driver reported an Xid could not be seen: GPU {index} sends none here, and {reason}"
    unseen = Evidence(text, "gpu", cards[0].at)
    return [
        replace(finding, evidence=(*finding.evidence, unseen))
        if CAUSES[finding.cause].xids or (finding.cause in ENDED_BY_XID and _spoke_of_gpu(window))
        else finding
        for finding in findings
    ]


def best_of_each(findings: Sequence[Finding]) -> list[Finding]:
    """The same fault told by kernel and driver is still one."""
    best: dict[str, Finding] = {}
    for finding in findings:
        if finding.cause not in best or finding.confidence > best[finding.cause].confidence:
            best[finding.cause] = finding
    return list(best.values())


def _of(event: Event) -> list[Finding]:
    if event.kind == "gpu.lost":
        told = Evidence(f"the driver has lost GPU {event.data.get('index', '?')}", "gpu", event.at)
        return [Finding("gpu-lost", LOST, (told,))]
    if event.kind == "gpu.xid":
        found = of_xid(int(event.data.get("xid") or 0), f"GPU {event.data.get('index', '?')}")
        return [] if found is None else [_said_by(found, "gpu", event.at)]
    said = from_line(str(event.data.get("text", "")))
    return [_said_by(finding, "kernel-log", event.at) for finding in said if not _whose(finding)]


def _whose(finding: Finding) -> bool:
    """Kills and crashes name a process: detectors know whether it was one of this run."""
    record = CAUSES[finding.cause]
    return bool(record.ran_out or record.symptom or record.signals)


def _of_this_run(finding: Finding, window: Window) -> Finding:
    """A card's fault ends who uses it. A wrong access, a disk or a processor in trouble may be another job's: without a word
    of a GPU from this one it is no more than a guess."""
    if finding.cause in OF_THE_CARD_ITSELF or (CAUSES[finding.cause].xids and _spoke_of_gpu(window)):
        return finding
    return at_most(finding, GUESS)


def _spoke_of_gpu(window: Window) -> bool:
    return any(SPOKEN_OF.search(window.output(stream)[-LAST_WORDS:]) for stream in window.streams())


def _said_by(finding: Finding, source: str, at: float) -> Finding:
    return replace(finding, evidence=tuple(replace(item, source=source, at=at) for item in finding.evidence))
