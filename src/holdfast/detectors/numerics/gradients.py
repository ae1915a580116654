"""Gradients that fade on their way to the first layers, or that are out of all proportion to the weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from holdfast.detectors.numerics.facts import READS, Course, figure, read
from holdfast.detectors.numerics.samples import Health
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    samples: int = 6
    steps: int = 60
    layers: int = 3
    faded: float = 1e-4  # of one number of the first layers, against the last ones
    squashed: float = 1e-2  # of it, where outputs are the same for every row
    same: float = 2e-3  # of their size: how far outputs of a batch are apart
    explodes: float = 1e3  # the gradient against the weights
    jumps: float = 1e3  # the largest against the usual


@reads(READS)
def find_vanishing(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    course = read(window)
    samples = _with_gradients(course)
    if course.setup is None or len(samples) < thresholds.samples or course.steps < thresholds.steps or course.learns():
        return None
    ratios = [ratio for sample in samples if (ratio := _first_to_last(sample, thresholds)) is not None]
    least = thresholds.squashed if _is_squashed(course, thresholds) else thresholds.faded
    if len(ratios) < thresholds.samples or median(ratios) > least or course.learns() is None:
        return None
    first, last = samples[-1].groups[0], samples[-1].groups[-1]
    text = (
        f"the gradient of {first.name} is {median(ratios):.0e} of that of {last.name} (norms {figure(first.gradient)} and "
        f"{figure(last.gradient)}), over {course.steps} steps in which the loss did not fall"
    )
    return Finding("vanishing-gradients", 0.85, (Evidence(text, "telemetry", samples[-1].at, median(ratios)),))


def _is_squashed(course: Course, thresholds: Thresholds) -> bool:
    """From the first sample to the last the outputs are the same for every row: what is fed is lost on its way, too."""
    known = [(one.spread, one.scale) for one in course.samples if one.spread is not None and one.scale]
    same = all(spread <= thresholds.same * scale for spread, scale in known if spread is not None and scale is not None)
    return len(known) >= thresholds.samples and same


def _with_gradients(course: Course) -> list[Health]:
    return [s for s in course.samples if sum(g.gradient is not None for g in s.groups) >= 2]


def _first_to_last(sample: Health, thresholds: Thresholds) -> float | None:
    """Dead layers have a gradient of exactly zero and are told as that."""
    known = [g.gradient_rms for g in sample.groups if g.gradient_rms is not None and g.numbers > 16]
    if len(known) < thresholds.layers or known[-1] <= 0 or known[0] <= 0:
        return None
    return known[0] / known[-1]


@reads(READS)
def find_exploding(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    """Without an incident: the norm leaps by orders of magnitude again and again, and the loss with it."""
    course = read(window)
    samples = _with_gradients(course)
    if (
        course.setup is None
        or course.incident is not None
        or len(samples) < thresholds.samples
        or course.steps < thresholds.steps
    ):
        return None
    norms = [norm for sample in samples if math.isfinite(norm := _norm(sample))]
    if len(norms) < thresholds.samples or course.learns() is not False:
        return None
    usual = sorted(norms)[len(norms) // 4]
    weight = math.sqrt(sum((g.weight or 0.0) ** 2 for g in samples[-1].groups)) or 1.0
    often = sum(norm >= thresholds.jumps * usual for norm in norms)
    if often < 3 and median(norms[-3:]) < thresholds.explodes * weight * max(1.0, usual / weight):
        return None
    if median(norms[-3:]) < 10 * weight:
        return None
    text = f"the norm of the gradient rose from {figure(usual)} to {figure(max(norms))} (the weights' is {figure(weight)}) and the loss does not fall"
    return Finding("exploding-gradients", 0.75, (Evidence(text, "telemetry", samples[-1].at, max(norms)),))


def _norm(sample: Health) -> float:
    return math.sqrt(sum((g.gradient or 0.0) ** 2 for g in sample.groups))
