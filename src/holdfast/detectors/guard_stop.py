"""Holdfast itself stopped the job, or one of its helpers, because memory ran out."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.detectors.endings import ENDING, ending
from holdfast.recorded_events import GuardAct
from holdfast.units import amount
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    helper_s: float = 60.0  # a job that loses a worker fails within this time, or survives
    stalled_s: float = 1.0  # everybody waited for memory so long: the machine was swapping


@reads(ENDING, events=[GuardAct.STOPPED])
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    how, stopped = ending(window), window.event(GuardAct.STOPPED)
    if stopped is None or (how is not None and how.code == 0):
        return None
    act = GuardAct.of(stopped)
    if not act.whole_job and how is not None and how.at - stopped.at > thresholds.helper_s:
        return None
    evidence = [Evidence(_text(act), "telemetry", stopped.at, act.taken_bytes)]
    if how is not None:
        evidence.insert(0, how.evidence())
    cause = "swap-thrash" if act.stalled_s > thresholds.stalled_s else act.cause
    headline = f"Stopped by Holdfast: {act.what} ran out"
    return Finding(cause, 0.95 if act.whole_job else 0.85, tuple(evidence), headline=headline)


def _text(act: GuardAct) -> str:
    whom = "the job" if act.whole_job else f"the helper {act.victim}"
    growing = f", growing {amount(act.per_s, 'bytes')}/s" if act.per_s > 0 else ""
    state = f"{amount(act.taken_bytes, 'bytes')} of {amount(act.whole_bytes, 'bytes')} in use{growing}"
    return f"Holdfast stopped {whom}: {act.what}: {state}"
