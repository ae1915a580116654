"""Of several ranks one stopped first: killed, or finished while the others had batches left, or it did not come.

What one raised, or how it crashed, is read from what it printed: `diagnosis/elastic`.
"""

from __future__ import annotations

from holdfast.detectors.endings import KERNEL_KILLS, kernel_kills
from holdfast.fleet.first_stop import FIRST_READS, FirstStop, Stop, first_stop
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

KILLED, COUNTED, NAMED, UNEQUAL, MISSING, LOST = 0.9, 0.93, 0.97, 0.85, 0.7, 0.7


@reads(FIRST_READS, KERNEL_KILLS)
def find(window: Window) -> Finding | None:
    first = first_stop(window)
    if first is None:
        return None
    if first.how in (Stop.KILLED, Stop.KILLED_FOR_MEMORY):
        return _killed(window, first)
    if first.how is Stop.FINISHED:
        others = [one.steps for one in first.others if one.steps is not None and not one.finished]
        steps = f"rank {first.rank} had finished {first.story.steps} steps; others were in step {max(others, default=0) + 1}"
        evidence = (*first.evidence(), Evidence(steps, "telemetry", first.story.stopped_at, first.story.steps))
        headline = f"Rank {first.rank} ran out of batches and ended, and the others waited for it"
        return Finding("unequal-batches", UNEQUAL, evidence, headline=headline)
    if first.how is Stop.MISSING:
        headline = f"Rank {first.rank} did not come to where the others waited for it"
        return Finding("collective-timeout", MISSING, first.evidence(), headline=headline)
    if first.how is Stop.LOST:
        headline = f"Rank {first.rank} was lost with its machine, or the machine with its network"
        return Finding("machine-went-down", LOST, first.evidence(), headline=headline)
    return None


def _killed(window: Window, first: FirstStop) -> Finding:
    named = [kill for kill in kernel_kills(window) if kill.pid == first.story.joined.pid]
    if not named and first.how is Stop.KILLED:
        headline = f"Rank {first.rank} was killed by somebody (SIGKILL), not for memory"
        return Finding("killed", KILLED, first.evidence(), headline=headline)
    at_a_limit = not named or any(kill.constraint == "CONSTRAINT_MEMCG" for kill in named)
    count = first.story.ended.killed_for_memory if first.story.ended is not None else None
    counted = [Evidence(f"the kernel counted {count} kill for memory in its control group", "telemetry", None, count)]
    evidence = (*first.evidence(), *(kill.evidence for kill in named), *(counted if count else ()))
    if at_a_limit:
        headline = f"Rank {first.rank} was killed by the kernel at a memory limit"
        return Finding("container-memory-limit", NAMED if named else COUNTED, evidence, headline=headline)
    headline = f"Rank {first.rank} was killed by the kernel: the machine was out of memory"
    return Finding("host-memory-exhausted", NAMED, evidence, headline=headline)
