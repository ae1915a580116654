"""A learning rate that is far too high or far too low for this model, by what its updates do to the weights and the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from holdfast.detectors.numerics.facts import READS, Course, figure, rate_details, read
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

FALLEN = 0.6  # of the lowest of the first losses


@dataclass(frozen=True, slots=True)
class Thresholds:
    steps: int = 40
    samples: int = 6
    moved: float = 0.05  # of the weights in one update, the middle sample
    adaptive_rate: float = 0.05
    plain_rate: float = 5.0
    grown: float = 3.0  # times the first loss
    blown_up: float = 3.0  # times the loss of a guess
    target_scale: float = 1e3
    low_ratio: float = 3e-5
    low_steps: int = 100
    low_change: float = 0.02  # of the loss, over all steps seen
    low_rate: float = 2e-6  # of an adaptive optimizer; fine-tuning goes down to 5e-6
    low_plain_rate: float = 2e-5


@reads(READS)
def find_high(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    course = read(window)
    samples = course.samples
    if (
        course.setup is None
        or course.incident is not None
        or len(samples) < thresholds.samples
        or course.steps < thresholds.steps
    ):
        return None
    learns = course.learns()
    rate = max((sample.rate for sample in samples if sample.rate is not None), default=course.setup.rate or 0.0)
    ratios = [ratio for sample in samples[2:] if (ratio := sample.moved) is not None]
    ratio = median(ratios) if len(ratios) >= 3 else None
    absurd = rate >= (thresholds.adaptive_rate if course.setup.adaptive else thresholds.plain_rate)
    shakes = ratio is not None and ratio >= thresholds.moved
    grows = _grows(course, thresholds)
    if grows and (absurd or shakes):
        effect, confidence = "the loss grows: " + _told(course), 0.85
    elif (shakes or (absurd and course.steps >= 5 * thresholds.steps)) and learns is False and not _has_fallen(course):
        effect, confidence = (
            "the loss does not fall: " + _told(course),
            0.8 if absurd and (shakes or rate >= 10 * thresholds.adaptive_rate) else 0.7,
        )
    elif absurd and _blew_up(course, thresholds):
        effect, confidence = "the loss rose, and after that it is no better than a guess: " + _told(course), 0.8
    elif (
        (worse := course.hopeless()) is not None
        and worse >= 100.0
        and course.steps >= 2 * thresholds.steps
        and course.setup.target_scale < thresholds.target_scale  # errors of that size throw weights away at any rate
    ):
        effect, confidence = f"the error is {figure(worse)} times that of always saying 0", 0.7
    elif grows and not course.setup.recurrent and _diverges(course):
        effect, confidence = "the loss grows from sample to sample: " + _told(course), 0.75
    else:
        return None
    moved = f", one update moves the weights by {ratio:.1%}" if ratio is not None else ""
    text = f"with a learning rate of {figure(rate)}{moved}, {effect}"
    details = rate_details(course.setup, lower=rate / 10)
    return Finding("learning-rate-too-high", confidence, (Evidence(text, "telemetry", samples[-1].at, rate),), details)


def _grows(course: Course, thresholds: Thresholds) -> bool:
    losses = [loss for loss in course.losses() if math.isfinite(loss)]
    if len(losses) < thresholds.samples or min(losses) < 0:
        return False
    first, last = median(losses[:3]), median(losses[-3:])
    return first > 0 and last >= thresholds.grown * first


def _blew_up(course: Course, thresholds: Thresholds) -> bool:
    """Classes that were guessed, until updates of this size made it worse than that; and they still are guessed."""
    losses = [loss for loss in course.losses() if math.isfinite(loss)]
    if course.setup is None or not course.at_chance() or course.steps < 2 * thresholds.steps:
        return False
    return max(losses) >= thresholds.blown_up * course.setup.chance_loss and losses[0] < max(losses)


def _diverges(course: Course) -> bool:
    losses = course.losses()[-8:]
    return len(losses) >= 8 and all(later >= 1.02 * earlier for earlier, later in pairwise(losses))


def _has_fallen(course: Course) -> bool:
    """In the end, however it went there: a rate that goes up and down again shakes on purpose."""
    losses = [loss for loss in course.losses() if math.isfinite(loss)]
    return _solved(course) or (len(losses) > 3 and losses[-1] < FALLEN * min(losses[:3]))


def _solved(course: Course) -> bool:
    """There is nothing left to learn."""
    right = [sample.correct for sample in course.samples[-3:] if sample.correct is not None]
    return bool(right) and min(right) > 0.95


def _told(course: Course) -> str:
    losses = course.losses()
    chosen = losses[:2] + losses[len(losses) // 2 : len(losses) // 2 + 1] + losses[-2:]
    return ", ".join(figure(loss) for loss in chosen)


@reads(READS)
def find_low(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    """Not while a rate is still being raised, and not where one was high before."""
    course = read(window)
    samples = course.samples
    if (
        course.setup is None
        or course.steps < thresholds.low_steps
        or len(samples) < thresholds.samples
        or _solved(course)
    ):
        return None
    rates = [sample.rate for sample in samples if sample.rate is not None]
    rate = max(rates, default=course.setup.rate or 0.0)
    if rates and rates[-1] > 1.5 * rates[0]:
        return None  # a warm-up
    ratios = [ratio for sample in samples if (ratio := sample.moved) is not None]
    low = rate <= (thresholds.low_rate if course.setup.adaptive else thresholds.low_plain_rate)
    if not low or not ratios or max(ratios) > thresholds.low_ratio or not course.flat(thresholds.low_change):
        return None
    if not any(group.gradient for group in samples[-1].groups):
        return None  # nothing to learn from, at any rate
    improved = course.improved() or 0.0
    text = (
        f"with a learning rate of {figure(rate)} one update moves the weights by {median(ratios):.1e} of themselves; "
        f"in {course.steps} steps the loss changed by {abs(improved):.1%}"
    )
    details = rate_details(course.setup, higher=1e-3 if course.setup.adaptive else 1e-2)
    return Finding(
        "learning-rate-too-low", 0.85 if low else 0.7, (Evidence(text, "telemetry", samples[-1].at, rate),), details
    )
