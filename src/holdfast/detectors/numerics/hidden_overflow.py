"""Half precision that overflows where a later operation hides it, so that nothing is learned from what came before."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.detectors.numerics.facts import READS, read
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    steps: int = 40


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    course = read(window)
    setup = course.setup
    if setup is None or not setup.overflow or course.steps < thresholds.steps or course.learns() is not False:
        return None
    text = (
        f"in the first step {setup.overflow} was given infinity in float16, which holds up to 65,504, and made 0 of it: the loss stays "
        f"finite, and does not fall in {course.steps} steps"
    )
    return Finding("mixed-precision-overflow", 0.8, (Evidence(text, "telemetry", setup.at),))
