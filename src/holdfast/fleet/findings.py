"""What it means that a rank stopped first, where that alone tells. What one raised, or how it crashed, is read from what it printed."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.fleet.first_stop import FirstStop, Stop
from holdfast.vocabulary import Evidence, Finding

KILLED, COUNTED, NAMED, UNEQUAL, MISSING, LOST = 0.9, 0.93, 0.97, 0.85, 0.7, 0.7
AT_A_LIMIT = "CONSTRAINT_MEMCG"  # in the kernel's words
Kill = tuple[str, Evidence]  # for memory: where it was short, and the line that says so


def finding_of(first: FirstStop, kills: Sequence[Kill] = ()) -> Finding | None:
    """`kills`: that the kernel's log names of this rank."""
    rank, evidence = first.rank, first.evidence()
    if first.how in (Stop.KILLED, Stop.KILLED_FOR_MEMORY):
        return _killed(first, kills)
    if first.how is Stop.FINISHED:
        others = [one.steps for one in first.others if one.steps is not None and not one.finished]
        steps = f"rank {rank} had finished {first.story.steps} steps; others were in step {max(others, default=0) + 1}"
        told = (*evidence, Evidence(steps, "telemetry", first.story.stopped_at, first.story.steps))
        headline = f"Rank {rank} ran out of batches and ended, and the others waited for it"
        return Finding("unequal-batches", UNEQUAL, told, headline=headline)
    if first.how is Stop.MISSING:
        headline = f"Rank {rank} did not come to where the others waited for it"
        return Finding("collective-timeout", MISSING, evidence, headline=headline)
    if first.how is Stop.LOST:
        headline = f"Rank {rank} was lost with its machine, or the machine with its network"
        return Finding("machine-went-down", LOST, evidence, headline=headline)
    return None


def _killed(first: FirstStop, kills: Sequence[Kill]) -> Finding:
    if not kills and first.how is Stop.KILLED:
        headline = f"Rank {first.rank} was killed by somebody (SIGKILL), not for memory"
        return Finding("killed", KILLED, first.evidence(), headline=headline)
    count = first.story.ended.killed_for_memory if first.story.ended is not None else None
    counted = [Evidence(f"the kernel counted {count} kill for memory in its control group", "telemetry", None, count)]
    evidence = (*first.evidence(), *(line for _, line in kills), *(counted if count else ()))
    if not kills or any(constraint == AT_A_LIMIT for constraint, _ in kills):
        headline = f"Rank {first.rank} was killed by the kernel at a memory limit"
        return Finding("container-memory-limit", NAMED if kills else COUNTED, evidence, headline=headline)
    headline = f"Rank {first.rank} was killed by the kernel: the machine was out of memory"
    return Finding("host-memory-exhausted", NAMED, evidence, headline=headline)
