"""Holdfast itself stopped the job, or one of its helpers, because memory ran out."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.detectors.endings import ending
from holdfast.detectors.units import amount
from holdfast.vocabulary import Event, Evidence, Finding, Window


@dataclass(frozen=True, slots=True)
class Thresholds:
    helper_s: float = 60.0  # a job that loses a worker fails within this time, or survives


def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:  # noqa: B008 - frozen
    how, stopped = ending(window), window.event("guard.stopped")
    if stopped is None or (how is not None and how.code == 0):
        return None
    exit_event = window.event("script.exit")
    whole = bool(stopped.data.get("whole_job"))
    if not whole and exit_event is not None and exit_event.at - stopped.at > thresholds.helper_s:
        return None
    evidence = [Evidence(_text(stopped), "telemetry", stopped.at, float(stopped.data["taken_bytes"]))]
    if how is not None:
        evidence.insert(0, how.evidence())
    cause = str(stopped.data.get("cause"))
    if float(stopped.data.get("stalled_s") or 0.0) > 1.0:
        cause = "swap-thrash"
    headline = f"Stopped by Holdfast: {_where(stopped)} ran out"
    return Finding(cause, 0.95 if whole else 0.85, tuple(evidence), {"headline": headline})


def _where(stopped: Event) -> str:
    return str(stopped.data.get("what", "memory"))


def _text(stopped: Event) -> str:
    data = stopped.data
    whom = "the job" if data.get("whole_job") else f"the helper {data.get('victim')}"
    taken, whole, per_s = (float(data[key]) for key in ("taken_bytes", "whole_bytes", "per_s"))
    growing = f", growing {amount(per_s, 'bytes')}/s" if per_s > 0 else ""
    state = f"{amount(taken, 'bytes')} of {amount(whole, 'bytes')} in use{growing}"
    return f"Holdfast stopped {whom}: {_where(stopped)}: {state}"
