"""Features or targets orders of magnitude from what a model starts at, where training suffers from it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from holdfast.detectors.numerics.facts import READS, Course, Setup, figure, read
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    input_scale: float = 30.0  # the largest value fed: images of 0 to 255, salaries, years
    tiny: float = 0.01  # the largest value fed: pixels that were divided by 255 twice
    first_loss: float = 8.0  # times what a model gives that knows nothing
    apart: float = 1e3  # between the largest and the smallest column
    steps: int = 60
    worse: float = 100.0
    target_scale: float = 50.0
    missed: float = 20.0  # times the spread of the outputs
    left: float = 0.7  # of the first loss, when enough steps are over
    no_gradient: float = 0.99  # of the first layer's weights
    overshot: float = 1e3  # a scale of targets whose first errors make updates that no weight stands…
    moved: float = 0.5  # …of the weights, in one of the first updates…
    plain_rate: float = 1.0  # …at a rate below this, of an optimizer whose updates grow with the error


@reads(READS)
def find_input(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    course = read(window)
    setup = course.setup
    if setup is None or setup.first_layer.lower().startswith(
        ("normal", "rescal", "batchnorm", "layernorm", "embed", "discret", "hash", "stringlookup")
    ):  # fmt: skip
        return None
    if 0.0 < setup.input_scale <= thresholds.tiny:
        suffers = _is_lost(course, setup, thresholds)
    else:
        suffers = _suffers(course, setup, thresholds) if setup.input_scale >= thresholds.input_scale else None
    if suffers is None:
        return None
    confidence, effect = suffers
    evidence = [Evidence(f"{_ranges(setup)}; {effect}", "telemetry", setup.at, setup.input_scale)]
    return Finding("unscaled-input", confidence, tuple(evidence))


def _is_lost(course: Course, setup: Setup, thresholds: Thresholds) -> tuple[float, str] | None:
    """What is fed is nothing beside the biases: scaled twice, most often."""
    if setup.normalised or course.steps < 2 * thresholds.steps or course.learns() is not False or setup.recurrent:
        return None
    return (
        0.75,
        f"beside weights and biases of an ordinary size that is next to nothing, and the loss has not fallen in {course.steps} steps",
    )


def _suffers(course: Course, setup: Setup, thresholds: Thresholds) -> tuple[float, str] | None:
    losses = [loss for loss in course.losses() if math.isfinite(loss)]
    if not losses or setup.normalised:
        return None
    learns = course.learns()
    if setup.classifies:
        first = max(losses[:3])
        if first >= thresholds.first_loss * setup.chance_loss:
            text = (
                f"the loss begins at {figure(first)}, where a model that knows nothing has {figure(setup.chance_loss)}"
            )
            return 0.8, text
    worse = course.hopeless()
    if course.steps >= thresholds.steps and worse is not None and worse >= thresholds.worse:
        return 0.8, f"after {course.steps} steps the error is {figure(worse)} times that of always saying 0"
    still = _first_layer_stands_still(course, thresholds)
    if still is not None:
        return 0.8, still
    if course.steps < thresholds.steps or learns is None or learns:
        return None
    dead = max((unit.dead + unit.saturated for sample in course.samples for unit in sample.units), default=0.0)
    if dead >= 0.5:
        return 0.8, f"{dead:.0%} of the units of a layer give the same for every row, and the loss does not fall"
    if _apart(setup) >= thresholds.apart or setup.input_scale >= 10 * thresholds.input_scale:
        return 0.7, f"the loss has not fallen in {course.steps} steps"
    return None


def _first_layer_stands_still(course: Course, thresholds: Thresholds) -> str | None:
    """Its units are saturated or dead from the start and it gets no gradient: later layers may still learn something of what is
    left, so the loss need not stay where it is."""
    samples = [sample for sample in course.samples if sample.groups]
    if len(samples) < 6 or course.steps < thresholds.steps:
        return None
    name = samples[-1].groups[0].name
    shares = [g.zero_share or 0.0 for s in samples[2:] for g in s.groups if g.name == name and g.gradient is not None]
    units = [unit for sample in samples for unit in sample.units if unit.layer == name]
    if len(shares) < 4 or not units or sorted(shares)[len(shares) // 10] < thresholds.no_gradient:
        return None
    stuck = min(max(unit.saturated, unit.dead) for unit in units)
    if stuck < thresholds.no_gradient:
        return None
    kind = units[-1].activation or "activation"
    return f"{stuck:.0%} of the units of {name} are saturated or dead ({kind}): it gets no gradient in {course.steps} steps"


def _apart(setup: Setup) -> float:
    found = 1.0
    for one in setup.inputs:
        columns = one["columns"] or {}
        largest, smallest = columns.get("largest_scale"), columns.get("smallest_scale")
        if largest and smallest:
            found = max(found, float(largest) / float(smallest))
    return found


def _ranges(setup: Setup) -> str:
    one = max(setup.inputs, key=lambda part: max(abs(part.number("min") or 0.0), abs(part.number("max") or 0.0)))
    text = f"the input goes from {figure(one.number('min'))} to {figure(one.number('max'))}"
    columns = one["columns"] or {}
    if columns.get("largest_scale") and columns.get("smallest_scale"):
        text += (
            f" (column {columns.get('largest_at', '?')} reaches {figure(float(columns['largest_scale']))}, "
            f"the smallest one {figure(float(columns['smallest_scale']))})"
        )
    return text


@reads(READS)
def find_target(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    """A quantity far beyond what the outputs can reach in the steps taken."""
    course = read(window)
    setup = course.setup
    if setup is None or setup.target_scale < thresholds.target_scale:
        return None
    if course.steps < thresholds.steps:
        return _missed_by_epochs(course, setup, thresholds)
    mean, spread = setup.targets.number("mean"), setup.targets.number("std")
    thrown = _thrown_away(course, setup, thresholds)
    if thrown is not None:
        return thrown
    scales = [sample.scale for sample in course.samples if sample.scale is not None]
    losses = [loss for loss in course.losses() if math.isfinite(loss)]
    if len(scales) < 5 or len(losses) < 6:
        return _missed_by_epochs(course, setup, thresholds)
    wanted, reached = setup.target_scale, median(scales[-3:])
    left = median(losses[-3:]) / (median(losses[:3]) or 1.0)
    if reached * thresholds.missed > wanted or left < thresholds.left:
        return None
    text = (
        f"the targets are about {figure(mean)} (deviation {figure(spread)}), and after {course.steps} steps the outputs "
        f"reach {figure(reached)}: {left:.0%} of the first loss is left"
    )
    return Finding("unscaled-target", 0.8, (Evidence(text, "telemetry", course.samples[-1].at, wanted),))


def _missed_by_epochs(course: Course, setup: Setup, thresholds: Thresholds) -> Finding | None:
    """Where steps are too slow to be sampled often: by the losses of whole epochs, and what the model gave at first."""
    low, high = setup.output.number("min"), setup.output.number("max")
    steps = course.shown[-1][0] if course.shown else 0
    if len(course.shown) < 3 or steps < thresholds.steps or low is None or high is None or not course.samples:
        return None
    reached, left = max(abs(low), abs(high)), course.shown[-1][1] / (course.shown[0][1] or 1.0)
    if reached * thresholds.missed > setup.target_scale or not thresholds.left <= left <= 1.5:
        return None
    mean, spread = setup.targets.number("mean"), setup.targets.number("std")
    text = (
        f"the targets are about {figure(mean)} (deviation {figure(spread)}), and the outputs begin at {figure(reached)} at most: after "
        f"{steps} steps {left:.0%} of the first epoch's loss is left"
    )
    return Finding("unscaled-target", 0.8, (Evidence(text, "telemetry", course.samples[-1].at, setup.target_scale),))


def _thrown_away(course: Course, setup: Setup, thresholds: Thresholds) -> Finding | None:
    """Errors of this size made the first updates many times as large as the weights: what is left does not learn, or takes very
    long to come back. A rate beyond any sane one is told as that."""
    worse = course.hopeless()
    first = [ratio for sample in course.samples[:3] if (ratio := sample.moved) is not None]
    absurd = setup.adaptive or (setup.rate or 0.0) >= thresholds.plain_rate
    if worse is None or worse < thresholds.worse or setup.target_scale < thresholds.overshot or absurd:
        return None
    if max(first, default=0.0) < thresholds.moved:
        return None
    mean, spread = setup.targets.number("mean"), setup.targets.number("std")
    text = (
        f"the targets are about {figure(mean)} (deviation {figure(spread)}), and the first updates were {figure(max(first))} times as "
        f"large as the weights: after {course.steps} steps the error is {figure(worse)} times that of always saying 0"
    )
    return Finding("unscaled-target", 0.8, (Evidence(text, "telemetry", course.samples[-1].at, setup.target_scale),))
