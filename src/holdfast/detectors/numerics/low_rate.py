"""A learning rate that is far too low, from the start or soon after it: updates that move nothing, while there is much to learn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from holdfast.detectors.numerics.facts import READS, Course, figure, rate_details, read
from holdfast.detectors.numerics.samples import Health
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

CLIPPED = "clipped to almost nothing"  # by which the recipe is chosen
FALLEN = "fell to almost nothing"  # by which the recipe is chosen


@dataclass(frozen=True, slots=True)
class Thresholds:
    steps: int = 100
    samples: int = 6
    ratio: float = 3e-5  # of the weights, in one update
    change: float = 0.02  # of the loss, over all steps seen
    rate: float = 2e-6  # of an adaptive optimizer; fine-tuning goes down to 5e-6
    plain_rate: float = 2e-5
    kept: float = 1e-3  # of a gradient, by a script that clips it
    fallen: float = 1e-3  # of the highest rate…
    soon: float = 0.2  # …in this share of the steps…
    within: int = 300  # …and in so many: what is lowered where the loss stands still takes epochs
    left: float = 0.5  # of the first loss: there was more to learn
    right: float = 0.9  # of the predictions
    long: int = 400  # steps
    moved: float = 0.1  # of the weights, over all of them


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    """Not while a rate is still being raised, and not where one was high before, but for a schedule that ran out at once."""
    course = read(window)
    samples = course.samples
    if (
        course.setup is None
        or course.steps < thresholds.steps
        or len(samples) < thresholds.samples
        or course.solved()
        or not any(group.gradient for group in samples[-1].groups)  # nothing to learn from, at any rate
    ):
        return None
    return _ran_out(course, thresholds) or _low_throughout(course, thresholds) or _hardly_moved(course, thresholds)


def _low_throughout(course: Course, thresholds: Thresholds) -> Finding | None:
    setup, samples = course.setup, course.samples
    assert setup is not None
    rates = [sample.rate for sample in samples if sample.rate is not None]
    rate = max(rates, default=setup.rate or 0.0)
    if rates and rates[-1] > 1.5 * rates[0]:
        return None  # a warm-up
    ratios = [ratio for sample in samples if (ratio := sample.moved) is not None]
    low = rate <= (thresholds.rate if setup.adaptive else thresholds.plain_rate)
    kept = _kept_by_clipping(course)
    clipped = kept is not None and kept <= thresholds.kept
    if not (low or clipped) or not ratios or max(ratios) > thresholds.ratio or not course.flat(thresholds.change):
        return None
    improved = course.improved() or 0.0
    of = f" and gradients {CLIPPED} ({kept:.0e} of them)" if clipped else ""
    text = (
        f"with a learning rate of {figure(rate)}{of} one update moves the weights by {median(ratios):.1e} of themselves; "
        f"in {course.steps} steps the loss changed by {abs(improved):.1%}"
    )
    details = rate_details(setup, higher=1e-3 if setup.adaptive else 1e-2)
    return Finding(
        "learning-rate-too-low", 0.85 if low else 0.7, (Evidence(text, "telemetry", samples[-1].at, rate),), details
    )


def _hardly_moved(course: Course, thresholds: Thresholds) -> Finding | None:
    """Over all steps, by an optimizer whose updates are as small as the gradients; and the error is still that of a guess."""
    setup, steps = course.setup, course.steps_told
    if setup is None or setup.adaptive or steps < thresholds.long or not course.flat(thresholds.change):
        return None
    shares = [share for sample in course.samples if (share := sample.moved_as_a_whole) is not None]
    if len(shares) < thresholds.samples or median(shares) * steps > thresholds.moved or not course.knows_nothing():
        return None
    rate = max((sample.rate or 0.0 for sample in course.samples), default=0.0)
    text = (
        f"with a learning rate of {figure(rate)} one update moves the weights by {median(shares):.1e} of themselves: in {steps} steps by "
        f"{median(shares) * steps:.1%} at most, and the loss is still that of a guess"
    )
    evidence = (Evidence(text, "telemetry", course.samples[-1].at, rate),)
    return Finding("learning-rate-too-low", 0.65, evidence, rate_details(setup, higher=max(0.1, 10 * rate)))


def _ran_out(course: Course, thresholds: Thresholds) -> Finding | None:
    """A schedule that counts steps where epochs were meant. At the end of a run a rate may be as low as it likes, and so may one that
    is lowered where the loss stands still: that needs a second epoch before it can be, and so never falls after each of the first."""
    rated = [one for one in course.samples if one.rate is not None and one.loss is not None and math.isfinite(one.loss)]
    highest = max((one.rate or 0.0 for one in rated), default=0.0)
    after = _since_it_fell(rated, highest, thresholds)
    each_epoch = _falls_each_epoch(rated)
    if course.setup is None or not (each_epoch or course.setup.optimizer["schedule"]):
        return None
    latest = thresholds.soon * course.steps_told
    if len(after) < 4 or after[0].step > (latest if each_epoch else min(thresholds.within, latest)):
        return None
    ratios = [ratio for one in after if (ratio := one.moved) is not None]
    if not ratios or max(ratios) > thresholds.ratio or not _much_is_left(course, rated, after, thresholds):
        return None
    lowest = after[-1].rate or 0.0
    text = (
        f"the learning rate {FALLEN}: it was {figure(highest)}, and {figure(after[0].rate)} by step {after[0].step} of {course.steps} "
        f"(now {figure(lowest)}); since then one update moves the weights by {median(ratios):.1e} of themselves, and the loss stays at "
        f"{figure(after[-1].loss)} (it began at {figure(rated[0].loss)})"
    )
    evidence = (Evidence(text, "telemetry", after[0].at, lowest),)
    return Finding("learning-rate-too-low", 0.8, evidence, rate_details(course.setup, higher=highest))


def _falls_each_epoch(rated: list[Health]) -> bool:
    """From the first epoch to the second and on, as far as samples were taken in them."""
    rates = {one.epoch: one.rate or 0.0 for one in reversed(rated) if one.epoch is not None and 0 <= one.epoch < 5}
    known = sorted(rates.items())
    halved = (later[1] <= earlier[1] / 2 ** (later[0] - earlier[0]) for earlier, later in pairwise(known))
    return {0, 1} <= rates.keys() and len(known) >= 3 and all(halved)


def _since_it_fell(rated: list[Health], highest: float, thresholds: Thresholds) -> list[Health]:
    """The latest samples, all of them at next to nothing of the highest rate."""
    found: list[Health] = []
    for one in reversed(rated):
        if (one.rate or 0.0) > thresholds.fallen * highest:
            break
        found.insert(0, one)
    return found if len(found) < len(rated) else []


def _much_is_left(course: Course, rated: list[Health], after: list[Health], thresholds: Thresholds) -> bool:
    losses = [one.loss or 0.0 for one in rated]
    first, last = median(losses[:3]), median([one.loss or 0.0 for one in after[-3:]])
    right = [one.correct for one in after[-3:] if one.correct is not None]
    if right and median(right) > thresholds.right:
        return False
    return min(losses) >= 0 and last > thresholds.left * first


def _kept_by_clipping(course: Course) -> float | None:
    """Of the gradient, by an update that is rate times gradient where nothing is clipped."""
    if course.setup is None or course.setup.adaptive or not course.setup.optimizer["clips"]:
        return None
    shares = [
        group.update / (sample.rate * group.gradient)
        for sample in course.samples
        for group in sample.groups
        if sample.rate and group.gradient and group.update is not None and math.isfinite(group.gradient)
    ]
    return median(shares) if shares else None
