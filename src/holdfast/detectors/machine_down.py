"""The record has no end, and the machine has booted since."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.units import amount
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

# Read last before it went: power, heat and memory are what takes a machine down.
LAST = (
    ("cpu.temperature_celsius", "the processor had {} °C"),
    ("gpu*.temperature_celsius", "{} had {} °C"),
    ("gpu*.power_watts", "{} drew {} W"),
)
LEFT, OF = "host.memory_available_bytes", "host.memory_total_bytes"


@reads(events=["machine", "aftermath", "script.exit"], latest=[LEFT, OF, *(name for name, _ in LAST)])
def find(window: Window) -> Finding | None:
    machine, aftermath = window.event("machine"), window.event("aftermath")
    if window.event("script.exit") is not None or machine is None or aftermath is None:
        return None
    then, now = machine.data.get("boot_id"), aftermath.data.get("boot_id")
    if not then or not now or then == now or _elsewhere(machine.data, aftermath.data):
        return None
    evidence = [Evidence("the record ends without an exit of the script", "journal", aftermath.data.get("last_at"))]
    evidence.append(Evidence(f"the machine has booted since: boot id {now[:8]}, then {then[:8]}", "machine"))
    return Finding("machine-went-down", 0.95, (*evidence, *_last_readings(window)))


def _elsewhere(then: object, now: object) -> bool:
    """Whoever reads the record on another machine knows nothing of the boots of that one."""
    names = [str(about.get("hostname") or "") for about in (then, now) if isinstance(about, dict)]
    return len(names) == 2 and all(names) and names[0] != names[1]


def _last_readings(window: Window) -> Iterator[Evidence]:
    left, whole = window.last(LEFT), window.value(OF)
    if left is not None and left.value is not None:
        of = f" of {amount(whole, 'bytes')}" if whole else ""
        text = f"the last reading: {amount(left.value, 'bytes')}{of} of memory were left"
        yield Evidence(text, "telemetry", left.at, left.value)
    for pattern, words in LAST:
        begin, _, end = pattern.partition("*")
        for name in window.names(begin, end) if end else [pattern]:
            sample = window.last(name)
            if sample is not None and sample.value is not None:
                of_which = [f"GPU {name[len(begin) : -len(end)]}"] if end else []
                told = words.format(*of_which, f"{sample.value:.0f}")
                yield Evidence(f"the last reading: {told}", "telemetry", sample.at, sample.value)
