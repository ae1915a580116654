"""The record has no end, and the machine has booted since."""

from __future__ import annotations

from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@reads(events=["machine", "aftermath", "script.exit"])
def find(window: Window) -> Finding | None:
    machine, aftermath = window.event("machine"), window.event("aftermath")
    if window.event("script.exit") is not None or machine is None or aftermath is None:
        return None
    then, now = machine.data.get("boot_id"), aftermath.data.get("boot_id")
    if not then or not now or then == now:
        return None
    evidence = [Evidence("the record ends without an exit of the script", "journal", aftermath.data.get("last_at"))]
    evidence.append(Evidence(f"the machine has booted since: boot id {now[:8]}, then {then[:8]}", "machine"))
    return Finding("machine-went-down", 0.95, tuple(evidence))
