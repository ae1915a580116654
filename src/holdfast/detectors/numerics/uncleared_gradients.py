"""Gradients that are never cleared: each update is made with the sum of all batches before it."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.detectors.numerics.facts import READS, figure, read
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

TEXT = "gradients are not cleared"  # by which the recipe is chosen


@dataclass(frozen=True, slots=True)
class Thresholds:
    samples: int = 8
    steps: int = 12


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    """Wrong by itself, whatever the loss does. Of one optimizer's steps: with several, one may be cleared and another not."""
    course = read(window)
    known = [(sample.step, sample.carried) for sample in course.samples if sample.carried is not None]
    later = [(step, carried) for step, carried in known if step > known[0][0]]  # the first update has nothing before it
    if len(later) < thresholds.samples or course.steps < thresholds.steps or not all(carried for _, carried in later):
        return None
    step, carried = later[-1]
    text = (
        f"{TEXT}: in all of {len(later)} steps looked at, the backward pass began with what the batches before had left, so each "
        f"update is made with the sum of all of them (at step {step} that sum was {figure(carried)} times the gradient the "
        "update was made with)"
    )
    return Finding("exploding-gradients", 0.93, (Evidence(text, "telemetry", course.samples[-1].at, carried),),
                   headline="Gradients add up from step to step: nobody clears them")  # fmt: skip
