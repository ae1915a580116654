"""Batch normalisation that is given one value of each feature: it gives the same whatever that value is, so nothing below it can learn."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.detectors.numerics.facts import READS, read
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    steps: int = 20
    learned: float = 0.1  # of the first loss: there may be a way around it


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    course = read(window)
    setup = course.setup
    improved = course.improved()
    if setup is None or not setup.normalised_alone or course.steps < thresholds.steps or improved is None:
        return None
    if improved >= thresholds.learned:
        return None
    names = ", ".join(setup.normalised_alone[:4])
    text = (
        f"{names} normalises over a batch of one row: a single value less its own mean is 0, so it gives the same for every row; "
        f"in {course.steps} steps the loss changed by {abs(improved):.1%}"
    )
    return Finding("batch-too-small-for-normalization", 0.88, (Evidence(text, "telemetry", setup.at),))
