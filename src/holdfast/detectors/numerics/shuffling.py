"""Batches of one class each, in order, because nobody shuffled."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby

from holdfast.detectors.numerics.facts import READS, read
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads


@dataclass(frozen=True, slots=True)
class Thresholds:
    samples: int = 10
    rows: int = 8
    pure: float = 0.98  # of a batch
    share: float = 0.8  # of the batches
    switches: float = 0.5  # of the samples at most: whoever feeds one class and then another on purpose takes turns


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
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
