"""Weights that should move and never do: none trainable, not given to the optimizer, or cut off from the loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median

from holdfast.detectors.numerics.facts import READS, Course, Setup, read
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

GOOD_ENOUGH, LEFT = 0.8, 0.25  # of the predictions; of the first loss
CLEARED = "gone at the update"  # by which the recipe is chosen
NOT_HAD = "no optimizer has them"  # by which the recipe is chosen
OF_NO_MODEL = "parameter "  # the training process numbers what an optimizer has and no model that was called
REPLACED = "no model has any more"  # by which the recipe is chosen


@dataclass(frozen=True, slots=True)
class Thresholds:
    steps: int = 20
    samples: int = 5
    long: int = 150  # steps in which a head on frozen features would have learned something
    share: float = 0.5  # of all weights
    head: int = 2  # layers; adapters are spread among the frozen ones
    expected: float = 1e-4  # of the weights, by rate and gradient: below that, rounding may leave nothing of an update
    moved: float = 1e-3  # of itself, by an update: what is trained is trained at a usual rate


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    course = read(window)
    setup = course.setup
    found = _left_out(course, thresholds) or _nothing_moves(course, thresholds) or _same_epochs(course, thresholds)
    if setup is not None:
        found = (
            _frozen(setup)
            or _frozen_features(setup, course, thresholds)
            or _replaced(setup, course, thresholds)
            or _not_given(setup, course, thresholds)
            or _cut_off(course, thresholds)
            or found
            or _cleared(setup, course, thresholds)
        )
    if found is None:
        return None
    confidence, text = found
    at = setup.at if setup is not None else course.samples[-1].at if course.samples else None
    return Finding("parameters-not-trained", confidence, (Evidence(text, "telemetry", at),))


def _left_out(course: Course, thresholds: Thresholds) -> tuple[float, str] | None:
    """Whoever trains a head on features that are good enough does so on purpose: then the loss falls. Layers in a plain list are never
    meant to be there."""
    if not course.samples:
        return None
    own, unregistered = course.samples[-1].left_out, course.samples[-1].unregistered
    if unregistered:
        return 0.8, (
            f"the loss depends on {_some(list(unregistered))}, and in {course.steps} steps they stay as they are: they stand in a plain "
            "list or dict, so the model does not count them among its parameters, and no optimizer has them"
        )
    still = _nothing_moves(course, thresholds) is not None
    if own and (still or course.learns() is False):
        old = any(group.name.startswith(OF_NO_MODEL) for group in course.samples[-1].groups)
        instead = f" (it has weights that {REPLACED})" if still and old else ""
        return 0.85, (
            f"the loss depends on {_some(list(own))}, and {NOT_HAD}{instead}: they stay as they are in {course.steps} steps in which "
            "the loss does not fall"
        )
    if own and course.samples[-1].never_trained and _much_is_left(course):
        return 0.75, (
            f"the loss depends on {_some(list(own))}, and {NOT_HAD}: they hold what they began with, and after {course.steps} steps the "
            "layers behind them still work with what is random"
        )
    return None


def _much_is_left(course: Course) -> bool:
    """To be learned: features that are random may be good enough for a head."""
    right = [sample.correct for sample in course.samples[-5:] if sample.correct is not None]
    if right:
        return median(right) < GOOD_ENOUGH
    losses = [loss for loss in course.losses() if math.isfinite(loss)]
    return len(losses) >= 6 and min(losses) >= 0 and median(losses[-3:]) > LEFT * median(losses[:3])


def _nothing_moves(course: Course, thresholds: Thresholds) -> tuple[float, str] | None:
    """The optimizer has weights, and they are none of this model's."""
    samples = [sample for sample in course.samples if sample.groups]
    if len(samples) < thresholds.samples or course.steps < thresholds.steps:
        return None
    if any(group.gradient is not None or group.update for sample in samples for group in sample.groups):
        return None
    names = [group.name for group in samples[-1].groups]
    if names[0].startswith(OF_NO_MODEL) and course.steps < thresholds.long:
        return None  # by then it is known what the loss depends on instead
    return 0.85, f"in {course.steps} steps no weight of the model got a gradient or moved ({_some(names)})"


def _same_epochs(course: Course, thresholds: Thresholds) -> tuple[float, str] | None:
    """To the last digit, where nothing could be sampled: there is nothing to train."""
    losses = [loss for _, loss in course.shown]
    if course.samples or len(losses) < 3 or not losses[0] or max(losses) - min(losses) > 1e-5 * abs(losses[0]):
        return None
    return 0.75, f"the loss is {losses[-1]:.5g} in each of {len(losses)} epochs, to the last digit: nothing is trained"


def _frozen(setup: Setup) -> tuple[float, str] | None:
    trainable, frozen = setup.weights.number("trainable"), setup.weights.number("frozen")
    names = [str(name) for name in setup.weights["frozen_names"] or ()]
    if trainable == 0 and frozen:
        return 0.95, f"none of the model's {frozen:,.0f} weights is trainable ({_some(names)})"
    last = setup.last.text("layer")
    if last and trainable and any(name == last or name.startswith((f"{last}.", f"{last}/")) for name in names):
        return 0.75, f"the last layer, {last}, is frozen while others train"
    return None


def _frozen_features(setup: Setup, course: Course, thresholds: Thresholds) -> tuple[float, str] | None:
    """Whose head moves and guesses all the same: features that were trained on anything tell more than nothing."""
    trainable, frozen = setup.weights.number("trainable"), setup.weights.number("frozen")
    names = [str(name) for name in setup.weights["frozen_names"] or ()]
    if (
        not trainable
        or not frozen
        or frozen < thresholds.share * (trainable + frozen)
        or course.steps < thresholds.long
    ):
        return None
    moved = [ratio for sample in course.samples if (ratio := sample.moved) is not None]
    losses, trained = course.losses(), [group.name for group in course.samples[-1].groups]
    if (
        not course.at_chance() or losses[-1] < 0.97 * setup.chance_loss
    ):  # its samples are far apart: it may have begun to learn
        return None
    if len(moved) < thresholds.samples or median(moved) < thresholds.moved or len(trained) > thresholds.head:
        return None
    return 0.7, (
        f"{frozen:,.0f} of {trainable + frozen:,.0f} weights are frozen ({_some(names)}), and after {course.steps} steps the rest is no "
        "better than a guess: there is nothing in what they give"
    )


def _not_given(setup: Setup, course: Course, thresholds: Thresholds) -> tuple[float, str] | None:
    """A head alone may be trained on purpose: then the loss falls."""
    missing = [str(name) for name in setup.optimizer["not_given"] or ()]
    if not missing or course.steps < thresholds.steps or course.learns() is not False:
        return None
    still = _unmoved(course)
    if still is not None and not any(_belongs(name, still) for name in missing):
        return None
    return (
        0.85,
        f"{len(missing)} trainable weights of the model were never given to the optimizer ({_some(missing)}): they stay as they are",
    )


def _replaced(setup: Setup, course: Course, thresholds: Thresholds) -> tuple[float, str] | None:
    """The optimizer was made before a layer was put in the place of another: it has the old one, which no loss depends on. The rest
    of the model learns around the new one."""
    missing = [str(name) for name in setup.optimizer["not_given"] or ()]
    samples = [sample for sample in course.samples if sample.groups]
    if not missing or len(samples) < thresholds.samples or course.steps < thresholds.steps:
        return None
    seen: dict[str, list[bool]] = {}
    for sample in samples:
        for group in sample.groups:
            if group.name.startswith(OF_NO_MODEL):
                seen.setdefault(group.name, []).append(group.gradient is not None)
    old = [name for name, has_gradient in seen.items() if len(has_gradient) == len(samples) and not any(has_gradient)]
    if not old:
        return None
    held = f"{len(old)} weights that {REPLACED}, and that never get a gradient"
    return 0.85, (
        f"the optimizer has {held}; {len(missing)} trainable weights of the model it does not have ({_some(missing)}): "
        "the layer was replaced after the optimizer was made, and stays as it is"
    )


def _unmoved(course: Course) -> set[str] | None:
    """Groups whose weights had the same norm in every sample."""
    norms: dict[str, list[float]] = {}
    for sample in course.samples:
        for group in sample.groups:
            if group.weight is not None:
                norms.setdefault(group.name, []).append(group.weight)
    known = {name: values for name, values in norms.items() if len(values) >= 3}
    return {name for name, values in known.items() if max(values) == min(values)} if known else None


def _belongs(parameter: str, groups: set[str]) -> bool:
    return any(parameter == group or parameter.startswith((f"{group}.", f"{group}/")) for group in groups)


def _cut_off(course: Course, thresholds: Thresholds) -> tuple[float, str] | None:
    """The layers nearest to the input have no gradient at all while later ones do. Heads that a loss does not use come last."""
    samples = [sample for sample in course.samples if sample.groups]
    if len(samples) < thresholds.samples or course.steps < thresholds.steps:
        return None
    setup = course.setup
    frozen = (
        {str(name).rsplit(".", 1)[0].rsplit("/", 1)[0] for name in (setup.weights["frozen_names"] or ())}
        if setup
        else set()
    )
    missing = [str(name) for name in setup.optimizer["not_given"] or ()] if setup else []
    cut: list[str] = []
    for group in samples[-1].groups:
        if group.name in frozen or any(name.startswith(group.name) for name in frozen):
            continue
        if any(f"/{group.name}/" in f"/{name}" for name in missing):
            continue  # of Keras: no gradient was asked for
        none = all(g.gradient is None or g.gradient == 0.0 for s in samples for g in s.groups if g.name == group.name)
        if not none:
            break
        cut.append(group.name)
    if (
        not cut
        or len(cut) == len(samples[-1].groups)
        or any(g.zero_share is None and g.gradient == 0.0 for g in samples[-1].groups[: len(cut)])
    ):
        return None
    if any(g.gradient == 0.0 for g in samples[-1].groups[: len(cut)]):
        return None  # a gradient of zero is one: units that are dead, told as that
    return (
        0.8,
        f"no gradient reaches {_some(cut)} in {course.steps} steps, while later layers have one: cut off from the loss",
    )


def _cleared(setup: Setup, course: Course, thresholds: Thresholds) -> tuple[float, str] | None:
    """There was a gradient after each backward pass, and no update has moved anything."""
    samples = [sample for sample in course.samples if sample.groups]
    if len(samples) < thresholds.samples or course.steps < thresholds.steps:
        return None
    updates = [group.update for sample in samples for group in sample.groups if group.update is not None]
    expected = [
        (sample.rate or 0.0) * (1.0 if setup.adaptive else group.gradient or 0.0) / group.weight
        for sample in samples
        for group in sample.groups
        if group.weight and group.gradient and group.update is not None  # of what the optimizer has
    ]
    if not updates or any(updates) or not expected or median(expected) < thresholds.expected:
        return None
    return 0.85, (
        f"in {course.steps} steps no weight moved at all, though each backward pass made gradients: they are {CLEARED} "
        "(cleared between the two, or taken from the parameters)"
    )


def _some(names: list[str]) -> str:
    return ", ".join(names[:4]) + (", …" if len(names) > 4 else "")
