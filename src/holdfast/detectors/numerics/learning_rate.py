"""A learning rate that is far too high for this model, by what its updates do to the weights and the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from holdfast.detectors.numerics.facts import READS, Course, Setup, figure, rate_details, read, smaller_rate
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

DECAY = "a weight decay"  # by which the recipe is chosen
TOLD = 1e-3  # of the weights: what moves less is no sign of a high rate
FALLEN = 0.6  # of the lowest of the first losses


@dataclass(frozen=True, slots=True)
class Thresholds:
    steps: int = 40
    samples: int = 6
    moved: float = 0.05  # of the weights in one update, the middle sample
    adaptive_rate: float = 0.05
    plain_rate: float = 5.0
    usual_rate: float = (
        5e-3  # of an adaptive optimizer: weights that begin very small move by much of themselves at first…
    )
    decayed: float = 0.02  # of the weights, by their decay, in one update
    patience: int = 4  # …so it takes so many times the steps
    grown: float = 3.0  # times the first loss
    blown_up: float = 3.0  # times the loss of a guess
    had_learned: float = 0.7  # of the loss of a guess
    target_scale: float = 1e3
    jump: float = 5.0  # times the rate before
    learned: float = 0.7  # of the first loss, before a jump…
    lost: float = 0.95  # …and after it: all that was learned is gone


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    course = read(window)
    samples = course.samples
    if (
        course.setup is None
        or course.incident is not None
        or len(samples) < thresholds.samples
        or course.steps_told < thresholds.steps
    ):
        return None
    undone = _undone_by_a_jump(course, thresholds)
    if undone is not None:
        return undone
    rate = max((sample.rate for sample in samples if sample.rate is not None), default=course.setup.rate or 0.0)
    ratios = [ratio for sample in samples[2:] if (ratio := sample.moved) is not None]
    ratio = median(ratios) if len(ratios) >= 3 else None
    absurd = rate >= (thresholds.adaptive_rate if course.setup.adaptive else thresholds.plain_rate)
    shakes = ratio is not None and ratio >= thresholds.moved
    grows = _grows(course, thresholds)
    if grows and (absurd or shakes):
        effect, confidence = "the loss grows: " + _told(course), 0.85
    elif (
        (shakes and course.steps >= _waited_for(course.setup, rate, thresholds))
        or (absurd and course.steps >= 5 * thresholds.steps)
    ) and _does_not_fall(course):
        effect, confidence = (
            "the loss does not fall: " + _told(course),
            0.8 if absurd and (shakes or rate >= 10 * thresholds.adaptive_rate) else 0.7,
        )
    elif absurd and (guess := _guesses_for_epochs(course, thresholds)):
        effect, confidence = guess, 0.8
    elif absurd and (lost := _fell_apart(course, thresholds)):
        effect, confidence = lost, 0.75
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
    moved = f", one update moves the weights by {ratio:.1%}" if ratio is not None and ratio >= TOLD else ""
    decay = _decay(course, rate, thresholds)
    text = f"with a learning rate of {figure(rate)}{moved}{decay}, {effect}"
    details = rate_details(course.setup, lower=rate if decay else smaller_rate(course.setup, rate))
    return Finding("learning-rate-too-high", confidence, (Evidence(text, "telemetry", samples[-1].at, rate),), details)


def _undone_by_a_jump(course: Course, thresholds: Thresholds) -> Finding | None:
    """It had learned, the rate was raised by several times, and it is back where it began or worse; not for a moment only."""
    samples = [one for one in course.samples if one.rate and one.loss is not None and math.isfinite(one.loss)]
    pairs = ((n, a.rate, b.rate) for n, (a, b) in enumerate(pairwise(samples), 1) if a.rate and b.rate)
    jump = next(((n, was, rate) for n, was, rate in pairs if rate >= thresholds.jump * was), None)
    if jump is None or jump[0] < 3 or min(one.loss or 0.0 for one in samples) < 0:
        return None
    place, was, rate = jump
    losses = [one.loss or 0.0 for one in samples]
    first, before, after = median(losses[:3]), median(losses[place - 3 : place]), losses[place:]
    lasted = samples[-1].step - samples[place].step >= thresholds.steps / 2
    if (
        len(after) < 4
        or not lasted
        or before > thresholds.learned * first
        or median(after[-3:]) < thresholds.lost * first
    ):
        return None
    text = (
        f"with a learning rate of {rate:.3g} (it was {was:.3g} before, a jump by step {samples[place].step}) the loss, which was {figure(before)}, "
        f"is {figure(median(after[-3:]))} since: no better than at the start ({figure(first)})"
    )
    evidence = (Evidence(text, "telemetry", samples[place].at, rate),)
    return Finding("learning-rate-too-high", 0.85, evidence, rate_details(course.setup, lower=was))


def _grows(course: Course, thresholds: Thresholds) -> bool:
    losses = [loss for loss in course.losses() if math.isfinite(loss)]
    if len(losses) < thresholds.samples or min(losses) < 0:
        return False
    first, last = median(losses[:3]), median(losses[-3:])
    return first > 0 and last >= thresholds.grown * first


def _blew_up(course: Course, thresholds: Thresholds) -> bool:
    """Classes that were guessed, until updates of this size made it worse than that; and they still are guessed."""
    losses = [loss for loss in course.losses() if math.isfinite(loss)]
    guesses = course.at_chance() or course.at_chance_lately()
    if course.setup is None or not guesses or course.steps < 2 * thresholds.steps:
        return False
    return max(losses) >= thresholds.blown_up * course.setup.chance_loss and losses[0] < max(losses)


def _guesses_for_epochs(course: Course, thresholds: Thresholds) -> str | None:
    """Where steps are too slow to be sampled often: by the losses of whole epochs."""
    if course.setup is None or not course.setup.classifies or len(course.shown) < 3 or course.solved():
        return None
    lowest, chance = min(loss for _, loss in course.shown), course.setup.chance_loss
    if course.shown[-1][0] < 2 * thresholds.steps or lowest < chance:
        return None
    return f"the loss of an epoch is {figure(lowest)} at best, where a model that knows nothing has {figure(chance)}"


def _fell_apart(course: Course, thresholds: Thresholds) -> str | None:
    """It had learned to tell classes, and in the end it does worse than one that knows nothing; by epochs, or else by samples."""
    losses = [loss for _, loss in course.shown] if len(course.shown) >= 4 else course.losses()
    if (
        course.setup is None
        or not course.setup.classifies
        or len(losses) < 4
        or course.steps_told < 2 * thresholds.steps
    ):
        return None
    chance, lowest, last = course.setup.chance_loss, min(losses[:-2]), losses[-2:]
    if (
        not all(math.isfinite(loss) for loss in losses)
        or lowest > thresholds.had_learned * chance
        or min(last) < chance
    ):
        return None
    return (
        f"the loss, which was {figure(lowest)} for a while, is {figure(last[-1])} in the end, and a model that knows nothing has "
        f"{figure(chance)}"
    )


def _diverges(course: Course) -> bool:
    losses = course.losses()[-8:]
    return len(losses) >= 8 and all(later >= 1.02 * earlier for earlier, later in pairwise(losses))


def _decay(course: Course, rate: float, thresholds: Thresholds) -> str:
    """A weight decay that takes more of the weights than gradients can give back."""
    decay = course.setup.optimizer.number("weight_decay") if course.setup is not None else None
    if not decay or rate * decay < thresholds.decayed:
        return ""
    return f" and {DECAY} of {figure(decay)}, which alone takes {rate * decay:.0%} of them each time"


def _waited_for(setup: Setup, rate: float, thresholds: Thresholds) -> int:
    usual = setup.adaptive and rate <= thresholds.usual_rate
    return thresholds.patience * thresholds.steps if usual else thresholds.steps


def _does_not_fall(course: Course) -> bool:
    return course.learns() is False and not _has_fallen(course)


def _has_fallen(course: Course) -> bool:
    """In the end, however it went there: a rate that goes up and down again shakes on purpose."""
    losses = [loss for loss in course.losses() if math.isfinite(loss)]
    return course.solved() or (len(losses) > 3 and losses[-1] < FALLEN * min(losses[:3]))


def _told(course: Course) -> str:
    losses = course.losses()
    chosen = losses[:2] + losses[len(losses) // 2 : len(losses) // 2 + 1] + losses[-2:]
    return ", ".join(figure(loss) for loss in chosen)
