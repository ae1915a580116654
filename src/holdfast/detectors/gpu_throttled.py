"""A card lowers its clock for heat or for power, with what that costs each step.

A card at its power limit under full load is healthy, and always at it. So a limit counts only where the same run was measurably
faster while the driver named no such reason; heat and the brake of the power supply count by the clock, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from holdfast.vocabulary import Evidence, Finding, Sample, Window
from holdfast.windows import reads

# Bits of NVML's reasons for a lowered clock.
POWER_LIMIT, HEAT, BRAKE = 0x4, 0x20 | 0x40, 0x80


@dataclass(frozen=True, slots=True)
class Thresholds:
    readings: int = 20  # on each side, and of the steps
    share: float = 0.5  # of the last readings
    clock: float = 0.1  # lower
    steps: float = 0.1  # longer
    fall_back: int = 60  # readings that count as the last


class Reason(NamedTuple):
    bits: int
    cause: str
    words: str
    by_clock: bool  # without steps that became longer


REASONS = (
    Reason(HEAT, "gpu-overheating", "for heat", True),
    Reason(BRAKE, "gpu-power-limited", "since its power supply asked for it", True),
    Reason(POWER_LIMIT, "gpu-power-limited", "for its power limit", False),
)


@reads(
    course=["gpu*.throttle_flags", "gpu*.sm_clock_mhz", "train.step_s"],
    latest=["gpu*.temperature_celsius", "gpu*.power_watts", "gpu*.power_limit_watts"],
)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    for name in window.names("gpu", ".throttle_flags"):
        flags = [sample for sample in window.series(name) if sample.value is not None]
        for reason in REASONS:
            found = _found(window, name.removesuffix(".throttle_flags"), flags, reason, thresholds)
            if found is not None:
                return found
    return None


def _found(
    window: Window, card: str, flags: Sequence[Sample], reason: Reason, thresholds: Thresholds
) -> Finding | None:
    latest = flags[-thresholds.fall_back :]
    held = [sample for sample in latest if _has(sample, reason.bits)]
    if len(held) < thresholds.readings or len(held) < thresholds.share * len(latest):
        return None
    clocks = _apart(window.series(f"{card}.sm_clock_mhz"), flags, reason.bits)
    steps = _apart(window.series("train.step_s"), flags, reason.bits)
    slower = _ratio(steps, thresholds.readings)
    lower = _ratio(clocks, thresholds.readings)
    costs = slower is not None and slower >= 1 + thresholds.steps
    lowers = lower is not None and lower <= 1 - thresholds.clock
    if not (costs and lowers) and not (reason.by_clock and lowers):
        return None
    number = card.removeprefix("gpu")
    texts = [f"GPU {number} lowered its clock {reason.words} in {len(held)} of the last {len(latest)} readings"]
    if lowers:
        texts.append(f"its clock was {median(clocks[0]):.0f} MHz then, {median(clocks[1]):.0f} MHz otherwise")
    if slower is not None:
        then, else_ = (f"{median(side) * 1000:.3g} ms" for side in steps)
        texts.append(f"a step took {then} then, {else_} otherwise: {max(0.0, slower - 1):.0%} longer")
    else:
        texts.append("what it cost in steps is not known: there are none from before it")
    evidence = [Evidence(text, "gpu", held[-1].at) for text in texts]
    headline = f"GPU {number} lowers its clock {reason.words}" + (
        f", and each step takes {slower - 1:.0%} longer" if costs and slower is not None else ""
    )
    return Finding(reason.cause, 0.85, (*evidence, *_readings(window, card, number)), headline=headline)


def _has(sample: Sample, bits: int) -> bool:
    return bool(int(sample.value or 0) & bits)


def _apart(series: Sequence[Sample], flags: Sequence[Sample], bits: int) -> tuple[list[float], list[float]]:
    """While the reason held, and while it did not: by the reading of flags that was next before each."""
    sides: tuple[list[float], list[float]] = ([], [])
    position, held = 0, None
    for sample in series:
        while position < len(flags) and flags[position].at <= sample.at:
            held = _has(flags[position], bits)
            position += 1
        if held is not None and sample.value:
            sides[0 if held else 1].append(sample.value)
    return sides


def _ratio(sides: tuple[list[float], list[float]], least: int) -> float | None:
    if min(map(len, sides)) < least:
        return None
    return median(sides[0]) / median(sides[1])


def _readings(window: Window, card: str, number: str) -> list[Evidence]:
    heat, power = window.last(f"{card}.temperature_celsius"), window.last(f"{card}.power_watts")
    limit = window.value(f"{card}.power_limit_watts")
    found = []
    if heat is not None and heat.value is not None:
        found.append(Evidence(f"GPU {number} has {heat.value:.0f} °C", "gpu", heat.at, heat.value))
    if power is not None and power.value is not None:
        of = f" of {limit:.0f} W that it may" if limit else ""
        found.append(Evidence(f"GPU {number} draws {power.value:.0f} W{of}", "gpu", power.at, power.value))
    return found
