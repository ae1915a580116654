"""Weights that are all zero or equal before the first step, so that units stay alike; or so large that units saturate at once."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from holdfast.detectors.numerics.facts import READS, Course, Part, read
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    share: float = 0.5  # of the layers; one that begins at zero on purpose has others beside it
    steps: int = 30
    times: float = 10.0  # the deviation that keeps a layer's output at the scale of its input
    saturated: float = 0.5  # of the units
    throughout: float = 0.8  # of a layer's, in every look: what is behind it may learn from such features all the same
    first_loss: float = 8.0
    no_gradient: float = 0.8  # of a layer's numbers: its bias gets one all the same


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    course = read(window)
    setup = course.setup
    if setup is None:
        return None
    same = [str(name) for name in (*(setup.weights["zero"] or ()), *(setup.weights["constant"] or ()))]
    layers = max((len(sample.groups) for sample in course.samples), default=0)
    constant = [str(name) for name in setup.weights["constant"] or ()]
    if layers >= 2 and len(constant) >= layers and course.steps >= thresholds.steps:
        text = (
            f"each weight of {', '.join(constant[:4])} has the same value before the first step: all units of a layer compute the same, "
            "get the same gradient and stay alike, so the model is as good as one with one unit a layer"
        )
        return Finding("bad-initialization", 0.85, (Evidence(text, "telemetry", setup.at),))
    stuck = len(same) >= layers or _get_no_gradient(course, same, thresholds)
    if same and layers >= 2 and len(same) >= thresholds.share * layers and stuck and _stays_so(course, thresholds):
        text = f"all weights of {', '.join(same[:4])} are equal before the first step: their units compute the same and stay alike"
        return Finding("bad-initialization", 0.9, (Evidence(text, "telemetry", setup.at),))
    largest = Part(setup.weights["largest"] or {})
    return _too_large(course, largest, thresholds)


def _stays_so(course: Course, thresholds: Thresholds) -> bool:
    """Told as soon as it is seen where nothing can learn; with a few steps where something might."""
    return course.steps >= thresholds.steps and course.learns() is False


def _get_no_gradient(course: Course, same: list[str], thresholds: Thresholds) -> bool:
    """Beside a layer that begins at random, one of zeros gets a gradient in each of its units and leaves zero behind: the head of a
    residual branch, the second table of word2vec. It stays where two of them follow each other."""
    shares = [
        group.zero_share
        for sample in course.samples[2:]
        for group in sample.groups
        if group.zero_share is not None and any(name.startswith((f"{group.name}.", f"{group.name}/")) for name in same)
    ]
    return len(shares) >= 2 and median(shares) >= thresholds.no_gradient


def _too_large(course: Course, largest: Part, thresholds: Thresholds) -> Finding | None:
    shape, deviation = largest.shape(), largest.number("std")
    setup = course.setup
    if setup is None or deviation is None or len(shape) < 2 or "embed" in largest.text("name").lower():
        return None
    inputs = math.prod(shape) // max(shape[0], shape[-1])  # the smaller guess of how many a unit adds up
    usual = math.sqrt(2.0 / max(1, inputs))
    if deviation < thresholds.times * usual or (course.learns() and not _stays_saturated(course, thresholds)):
        return None
    saturated = max((unit.saturated for sample in course.samples[:5] for unit in sample.units), default=0.0)
    losses = [loss for loss in course.losses()[:3] if math.isfinite(loss)]
    loud = setup.classifies and losses and max(losses) >= thresholds.first_loss * setup.chance_loss
    if saturated < thresholds.saturated and not loud:
        return None
    effect = f"{saturated:.0%} of a layer's units are saturated from the start" if saturated >= thresholds.saturated else (
        f"the loss begins at {max(losses):.3g}"
    )  # fmt: skip
    text = (
        f"the weights of {largest.text('name')} begin with a deviation of {deviation:.3g}, {deviation / usual:.0f} times what "
        f"{inputs} inputs want; {effect}"
    )
    return Finding("bad-initialization", 0.8, (Evidence(text, "telemetry", setup.at, deviation),))


def _stays_saturated(course: Course, thresholds: Thresholds) -> bool:
    """A layer, from the first look to the last, over many steps: nothing before it is trained."""
    looks: dict[str, list[float]] = {}
    for sample in course.samples:
        for unit in sample.units:
            looks.setdefault(unit.layer, []).append(unit.saturated)
    lowest = (min(shares) for shares in looks.values() if len(shares) >= 2)
    return course.steps >= thresholds.steps and max(lowest, default=0.0) >= thresholds.throughout
