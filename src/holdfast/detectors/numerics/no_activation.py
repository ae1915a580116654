"""Dense layers that follow each other with nothing between: together they are one linear layer, and what is not linear stays unlearned."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from holdfast.detectors.numerics.facts import READS, Course, Setup, figure, read
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

TEXT = "with no activation between"  # by which the recipe is chosen


@dataclass(frozen=True, slots=True)
class Thresholds:
    steps: int = 100
    samples: int = 8
    settled: float = 0.05  # of the loss, over the second half: it has come as far as it goes
    guess: float = 0.97  # of the loss of one that knows nothing
    unexplained: float = 0.25  # of the targets' variance


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    """Only by the effect: many models that learn well have two such layers somewhere."""
    course = read(window)
    setup = course.setup
    if setup is None or not setup.linear or course.steps < thresholds.steps or len(course.samples) < thresholds.samples:
        return None
    effect = _effect(course, setup, thresholds)
    if effect is None:
        return None
    names = " and ".join(setup.linear[:2]) if len(setup.linear) == 2 else f"{', '.join(setup.linear[:5])}"
    text = f"{names} follow each other {TEXT}: together they are one linear layer; {effect}"
    evidence = Evidence(text, "telemetry", setup.at)
    return Finding(
        "dead-activations", 0.6, (evidence,), headline="The model is linear: no activation between its layers"
    )


def _effect(course: Course, setup: Setup, thresholds: Thresholds) -> str | None:
    losses = [loss for loss in course.losses() if math.isfinite(loss)]
    if course.learns() is False:
        return f"the loss does not fall in {course.steps} steps"
    if setup.classifies and len(losses) >= 5 and median(losses[-5:]) >= thresholds.guess * setup.chance_loss:
        return f"after {course.steps} steps the loss is that of a guess ({figure(setup.chance_loss)})"
    half = losses[len(losses) // 2 :]
    spread = setup.targets.number("std")
    squared = any(word in setup.loss.text("name") for word in ("mse", "squared"))
    if not squared or not spread or len(half) < 4:
        return None
    early, late = median(half[: len(half) // 2]), median(half[len(half) // 2 :])
    left = late / spread**2
    if abs(early - late) > max(thresholds.settled * early, 1.5 * course.noise() * early):
        return None
    return f"{left:.0%} of the targets' variance stay unexplained" if left >= thresholds.unexplained else None
