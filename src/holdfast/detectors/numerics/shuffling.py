"""Batches of one class each, in order, because nobody shuffled; or a part held out that has other classes than the rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from holdfast.detectors.numerics.facts import READS, read
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import Reads, reads

HELD_OUT = "numerics.held_out"
LAST_ROWS = "in order of its labels: the last rows"  # by which the recipe is chosen


@dataclass(frozen=True, slots=True)
class Thresholds:
    samples: int = 10
    rows: int = 8
    pure: float = 0.98  # of a batch
    share: float = 0.8  # of the batches
    held_out: int = 50  # rows
    trained: int = 100  # rows
    apart: float = 0.7  # of the rows held out have a class that the others have less of: 0 alike, 1 nothing in common
    luck: float = 1e-6  # that rows which were chosen at random are all of one class
    switches: float = 0.5  # of the samples at most: whoever feeds one class and then another on purpose takes turns


@reads(READS | Reads(events=(HELD_OUT,)))
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    return _batches_of_one_class(window, thresholds) or _other_classes_held_out(window, thresholds)


def _batches_of_one_class(window: Window, thresholds: Thresholds) -> Finding | None:
    course = read(window)
    seen = [(sample.step, sample.classes) for sample in course.samples if sample.classes is not None]
    large = [(step, classes) for step, classes in seen if classes.rows >= thresholds.rows]
    if course.setup is None or len(large) < thresholds.samples:
        return None
    pure = [(step, classes) for step, classes in large if classes.share >= thresholds.pure]
    kinds = {classes.most_common for _, classes in pure}
    if len(pure) < thresholds.share * len(large) or len(kinds) < 2:
        return None
    turns = len(list(groupby(classes.most_common for _, classes in pure))) - 1
    if len(kinds) == 2 and turns > thresholds.switches * len(pure):
        return None
    text = (
        f"{len(pure)} of {len(large)} batches looked at hold one class only (class {pure[0][1].most_common} at step {pure[0][0]}, "
        f"class {pure[-1][1].most_common} at step {pure[-1][0]}): the data is in order of its labels"
    )
    return Finding("data-not-shuffled", 0.88, (Evidence(text, "telemetry", course.samples[-1].at),))


def _other_classes_held_out(window: Window, thresholds: Thresholds) -> Finding | None:
    """`validation_split` takes the last rows, and `fit` shuffles only those before: a score on them says nothing."""
    setup = read(window).setup
    if setup is None or not setup.classifies:
        return None
    for event in window.events(HELD_OUT):
        counts = [[int(number) for number in row] for row in event.data.get("counts") or () if len(row) == 3]
        trained, held_out = (sum(row[place] for row in counts) for place in (1, 2))
        if trained < thresholds.trained or held_out < thresholds.held_out or not _are_apart(counts, thresholds):
            continue
        most = max(counts, key=lambda row: row[2])
        text = (
            f"of {held_out} rows that are held out {most[2]} are of class {most[0]}, of {trained} that are trained on {most[1]}: "
            f"the data was {LAST_ROWS} were taken for the validation, and its figures say nothing of what was learned"
        )
        evidence = (Evidence(text, "telemetry", event.at),)
        return Finding(
            "data-not-shuffled", 0.85, evidence, headline="The rows held out are of other classes than those trained on"
        )
    return None


def _are_apart(counts: Sequence[Sequence[int]], thresholds: Thresholds) -> bool:
    trained, held_out = (sum(row[place] for row in counts) for place in (1, 2))
    apart = sum(max(0.0, row[2] / held_out - row[1] / trained) for row in counts)
    only = [row for row in counts if row[2]]
    by_luck = (only[0][1] / trained) ** held_out if len(only) == 1 else 1.0
    return apart >= thresholds.apart or by_luck <= thresholds.luck
