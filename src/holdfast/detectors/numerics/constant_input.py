"""Every row of a batch is the same, while the labels differ: something on the way to the model has lost the data."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.detectors.numerics.facts import READS, Part, figure, read
from holdfast.vocabulary import Evidence, Finding, Window
from holdfast.windows import reads

TEXT = "every row of the batch is the same"  # by which the recipe is chosen


@dataclass(frozen=True, slots=True)
class Thresholds:
    rows: int = 8
    steps: int = 20  # the loss must have had time to fall


@reads(READS)
def find(window: Window, thresholds: Thresholds = Thresholds()) -> Finding | None:
    course = read(window)
    setup = course.setup
    if setup is None or not setup.inputs or course.steps < thresholds.steps or course.learns() is not False:
        return None
    targets = setup.targets
    differ = (targets.number("distinct") or 0) > 1 or (targets.number("std") or 0.0) > 0.0
    rows = min((one.shape()[0] for one in setup.inputs if one.shape()), default=0)
    if not differ or rows < thresholds.rows or not all(_is_constant(one) for one in setup.inputs):
        return None
    first = setup.inputs[0]
    value = (
        f"all values are {figure(first.number('min'))}"
        if first.number("min") == first.number("max")
        else "column by column"
    )
    name = first.text("name") or "the input"
    text = f"{TEXT} ({name}, {rows} rows, {value}), and their labels are not: nothing can be learned from it, and the loss does not fall"
    return Finding("bad-input-values", 0.85, (Evidence(text, "telemetry", setup.at),), headline="The input is constant")


def _is_constant(values: Part) -> bool:
    low, high = values.number("min"), values.number("max")
    if low is not None and low == high and not values.number("non_finite"):
        return True
    columns = Part.of(values, "columns")
    return bool(columns.number("count")) and columns.number("count") == columns.number("constant")
