"""Native code crashed while the job was at its memory budget: an allocation failed and was not checked.

Measured: TensorFlow with oneDNN segfaults in a convolution whose output could not be allocated.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.detectors import reported_out_of_memory
from holdfast.detectors.endings import ALLOCATION_CRASHES, ENDING, Ending, ending
from holdfast.detectors.held_memory import HELD, most_held
from holdfast.detectors.reported_out_of_memory import device
from holdfast.units import amount
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    at_budget_ratio: float = 0.9  # of the budget held
    before_s: float = 15.0  # the crash
    after_rescue_s: float = 60.0  # from an error that was caught to the crash


@reads(ENDING, HELD, reported_out_of_memory.find.reads, latest=["job.memory_budget_bytes"], events=["rescue.caught"])
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    how = ending(window)
    if how is None or how.signal not in ALLOCATION_CRASHES:
        return None
    on_a_device = reported_out_of_memory.find(window)
    if on_a_device is not None and on_a_device.cause == "gpu-memory-exhausted":
        return None  # however much the job held on the host
    seen = _at_budget(window, how, thresholds) + _after_rescue(window, how, thresholds)
    if not seen:
        return None
    headline = "Out of memory: native code broke at the job's memory budget"
    confidence = 0.9 if len(seen) > 1 else 0.82
    return Finding("host-memory-exhausted", confidence, (how.evidence(), *seen), headline=headline)


def _at_budget(window: Window, how: Ending, thresholds: Thresholds) -> list[Evidence]:
    budget = window.value("job.memory_budget_bytes")
    highest = most_held(window, how.at - thresholds.before_s)
    if not budget or highest is None or (highest.value or 0.0) < thresholds.at_budget_ratio * budget:
        return []
    text = (
        f"the job held {amount(highest.value or 0.0, 'bytes')} of its budget of {amount(budget, 'bytes')} right before"
    )
    return [Evidence(text, "telemetry", highest.at, highest.value)]


def _after_rescue(window: Window, how: Ending, thresholds: Thresholds) -> list[Evidence]:
    caught = [
        event
        for event in window.events("rescue.caught")
        if 0 <= how.at - event.at < thresholds.after_rescue_s and device(event) != "gpu"
    ]
    if not caught:
        return []
    last = caught[-1]
    text = (
        f"out of memory was caught shortly before, at step {last.data.get('step', '?')}: {last.data.get('wanted', '')}"
    )
    return [Evidence(text.rstrip(": "), "telemetry", last.at)]
