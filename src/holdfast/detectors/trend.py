"""Whether a quantity keeps growing with the steps, as opposed to a jump, a cache that fills up, or a sawtooth."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from holdfast.slope import slope
from holdfast.vocabulary import Window
from holdfast.windows import Reads

MOST_POINTS = 48  # pairwise slopes of more points cost milliseconds and give the same answer

BY_STEP = Reads(course=("train.epoch_count",))  # what `points` reads beside the signal it is given
BY_CLOCK = BY_STEP | Reads(course=("train.steps_count",))


@dataclass(frozen=True, slots=True)
class Thresholds:
    warm_up_steps: int = 10  # not counted: building, tracing, the allocator's first arenas
    points: int = 8  # at least that many readings,
    steps: int = 20  # over at least so many steps
    seconds: float = 0.7  # and so long
    grown_bytes: float = 32 << 20  # small Keras programs were measured to take 1 to 6 MiB more after their first step
    grown_ratio: float = 0.02  # of what is held: the memory of large jobs varies by larger amounts
    parts: int = 4  # that the stretch is divided into
    border_ratio: float = 0.5  # of the slope before the end of an epoch, to be reached after it
    fall_ratio: float = 0.3  # of the growth, freed at once: a sawtooth
    part_ratio: float = 0.4  # of the whole slope, to be reached in the last part and in all others but one
    later_ratio: float = 0.25  # of the growth, in the second half of the steps: a full cache still grows a little


@dataclass(frozen=True, slots=True)
class Point:
    step: float
    level: float
    at: float
    epoch: float | None


@dataclass(frozen=True, slots=True)
class Growth:
    """`survived`: it went on in a later epoch and did not fall at the end of one. `rises`: how many equal rises it amounts to."""

    per_step: float
    first: Point
    last: Point
    survived: bool
    rises: float

    @property
    def steps(self) -> float:
        return self.last.step - self.first.step

    @property
    def amount(self) -> float:
        return self.last.level - self.first.level


def points(window: Window, signal: str) -> list[Point]:
    """Levels that were read together with the step they belong to."""
    epochs = _Epochs(window)
    return [
        Point(sample.step, sample.value, sample.at, epochs.at(sample.at))
        for sample in window.series(signal)
        if sample.value is not None and sample.step is not None
    ]


def points_by_clock(window: Window, signal: str, less: str) -> list[Point]:
    """Levels read from outside, with the step reached by then; the signal `less` is subtracted."""
    known_less = [sample for sample in window.series(less) if sample.value is not None]
    less_at = [sample.at for sample in known_less]
    steps = [sample for sample in window.series("train.steps_count") if sample.value is not None]
    epochs = _Epochs(window)
    starts = [sample.at for sample in steps]
    found = []
    for sample in window.series(signal):
        known = bisect_right(starts, sample.at)
        if sample.value is not None and 0 < known < len(steps):
            before, after = steps[known - 1], steps[known]
            share = (sample.at - before.at) / max(after.at - before.at, 1e-9)
            step = (before.value or 0.0) + share * ((after.value or 0.0) - (before.value or 0.0))
            told = bisect_right(less_at, sample.at)
            level = sample.value - ((known_less[told - 1].value or 0.0) if told else 0.0)
            found.append(Point(step, level, sample.at, epochs.at(before.at)))
    return found


class _Epochs:
    """Counted on over several fits: each begins at zero again, and a search has many short ones."""

    def __init__(self, window: Window) -> None:
        self._starts: list[float] = []
        self._epochs: list[float | None] = []
        begun, last = 0.0, None
        for sample in window.series("train.epoch_count"):
            if sample.value is not None and last is not None and sample.value < last:
                begun += last + 1
            last = last if sample.value is None else sample.value
            self._starts.append(sample.at)
            self._epochs.append(None if sample.value is None else begun + sample.value)

    def at(self, moment: float) -> float | None:
        """As it was at the look before: a border is seen late rather than early."""
        known = bisect_right(self._starts, moment)
        return self._epochs[known - 1] if known else None


def growth(course: Sequence[Point], thresholds: Thresholds = Thresholds()) -> Growth | None:
    """The longest stretch up to now with steady growth; None where there is none."""
    course = [point for point in course if point.step >= thresholds.warm_up_steps]
    if not course:
        return None
    whole = course[-1].step - course[0].step
    for share in (1.0, 0.5, 0.25):
        stretch = [point for point in course if point.step >= course[-1].step - share * whole]
        if len(stretch) < thresholds.points:
            return None
        found = _steady(_thinned(stretch), course, thresholds)
        if found is not None:
            return found
    return None


def _steady(stretch: Sequence[Point], course: Sequence[Point], thresholds: Thresholds) -> Growth | None:
    first, last = stretch[0], stretch[-1]
    steps, amount = last.step - first.step, last.level - first.level
    if steps < thresholds.steps or last.at - first.at < thresholds.seconds:
        return None
    if amount < max(thresholds.grown_bytes, thresholds.grown_ratio * last.level):
        return None
    if _fall(stretch) > thresholds.fall_ratio * amount:
        return None
    per_step = _slope(stretch)
    if per_step is None or per_step * steps < 0.5 * amount:
        return None  # one jump made most of it
    rates = _part_rates(stretch, thresholds.parts)
    kept_on = [rate >= thresholds.part_ratio * per_step for rate in rates]
    if not kept_on[-1] or sum(kept_on) < thresholds.parts - 1:
        return None
    if last.level - _level_at(stretch, first.step + steps / 2) < thresholds.later_ratio * amount:
        return None
    return Growth(per_step, first, last, _survived(course, per_step, thresholds), _rises(stretch))


def _rises(stretch: Sequence[Point]) -> float:
    """How many equal rises the growth amounts to: about five for five jumps, one a reading for steady growth."""
    rises = [max(0.0, after.level - before.level) for before, after in pairwise(stretch)]
    squares = sum(rise * rise for rise in rises)
    return sum(rises) ** 2 / squares if squares else 0.0


def _slope(stretch: Sequence[Point]) -> float | None:
    return slope([(point.step, point.level) for point in stretch])


def _part_rates(stretch: Sequence[Point], parts: int) -> list[float]:
    first, last = stretch[0].step, stretch[-1].step
    length = (last - first) / parts
    levels = [_level_at(stretch, first + length * i) for i in range(parts + 1)]
    return [(after - before) / length for before, after in pairwise(levels)]


def _level_at(stretch: Sequence[Point], step: float) -> float:
    """Interpolated between two readings: only a few of those long past are kept."""
    for before, after in pairwise(stretch):
        if step <= after.step and after.step > before.step:
            return before.level + (after.level - before.level) * (step - before.step) / (after.step - before.step)
    return stretch[-1].level


def _survived(course: Sequence[Point], per_step: float, thresholds: Thresholds) -> bool:
    """A cache stops growing once all data has been seen; a list of an epoch's figures is dropped at its end.

    So the growth since the end of an epoch has to be like the growth before it, with nothing freed there.
    """
    if _fall(course) > thresholds.fall_ratio * (course[-1].level - course[0].level):
        return False
    epochs = sorted({point.epoch for point in course if point.epoch is not None})
    for epoch in reversed(epochs[1:]):
        before = _thinned([point for point in course if point.epoch is not None and point.epoch < epoch])
        since = _thinned([point for point in course if point.epoch is not None and point.epoch >= epoch])
        steps, grown = since[-1].step - since[0].step, since[-1].level - since[0].level
        if len(since) < thresholds.points / 2 or steps < thresholds.steps / 2:
            continue
        expected = max(per_step, _slope(before[-thresholds.points :]) or 0.0)
        kept = min(point.level for point in since) >= before[-1].level - 0.25 * (before[-1].level - before[0].level)
        rate = min(_slope(since) or 0.0, grown / steps)
        return kept and grown >= thresholds.grown_bytes / 2 and rate >= thresholds.border_ratio * expected
    return False


def _fall(stretch: Sequence[Point]) -> float:
    """The deepest fall below an earlier maximum."""
    highest, fall = stretch[0].level, 0.0
    for point in stretch:
        highest = max(highest, point.level)
        fall = max(fall, highest - point.level)
    return fall


def _thinned(stretch: Sequence[Point]) -> list[Point]:
    every = -(-len(stretch) // MOST_POINTS)
    return [*stretch[:-1:every], stretch[-1]]
