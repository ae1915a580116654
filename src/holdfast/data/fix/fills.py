"""What stands in for a bad value, column by column: taken from the finite values alone."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from holdfast.data.audit.tables import Gathered, label_column
from holdfast.data.fix.medians import median
from holdfast.data.fix.rules import CannotFix, Rules
from holdfast.data.formats.contract import Array, Numbers, Table
from holdfast.data.formats.written_numbers import parsed


def fills_for(table: Table, found: Gathered, rules: Rules) -> dict[int, float]:
    """Only of columns that need one."""
    if rules.impute is None:
        return {}
    label = label_column(table, rules.labels)
    needed = [
        int(number)
        for number in np.flatnonzero(found.columns.bad)
        if number != label and _is_number(table, found, int(number))
    ]
    made: dict[int, float] = dict.fromkeys(needed, rules.impute) if isinstance(rules.impute, float) else {}
    if not made:
        made = {number: _typical(table, found, number, rules) for number in needed}
    if rules.clip is not None:
        made = {number: min(max(fill, rules.clip[0]), rules.clip[1]) for number, fill in made.items()}
    return made


def _typical(table: Table, found: Gathered, number: int, rules: Rules) -> float:
    count = int(found.columns.finite[number])
    if not count:
        name = table.schema.columns[number].name
        raise CannotFix(
            f"{table.path}: column {name} has no finite value to take a {rules.impute} of; give one (--impute 0) or --drop-rows"
        )
    if rules.impute == "mean":
        return float(found.columns.mean[number])
    return median(lambda: finite_values(table, number), count)


def _is_number(table: Table, found: Gathered, number: int) -> bool:
    return number not in found.texts or found.texts[number].numbers > 0


def finite_values(table: Table, number: int) -> Iterator[Array]:
    for part in table.parts():
        for chunk in table.read(part):
            for block in chunk.blocks:
                if not isinstance(block, Numbers):
                    if block.column != number or not block.expects_numbers:
                        continue
                    values, present = parsed(block.values)
                    yield values[present & np.isfinite(values)]
                elif block.first_column <= number < block.first_column + block.values.shape[1]:
                    yield _finite(block, number - block.first_column)


def _finite(block: Numbers, number: int) -> Array:
    values = block.values[:, number]
    good = np.isfinite(values)
    if block.missing is not None:
        good &= ~block.missing[:, number]
    return np.asarray(values[good])
