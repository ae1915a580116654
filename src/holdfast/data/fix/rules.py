"""What is done to values that no training survives. Pure: arrays in, arrays out, with a list of what changed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from holdfast.data.formats.contract import Array


class CannotFix(Exception):
    """In one line: what stands in the way, and what to do."""


@dataclass(frozen=True)
class Rules:
    impute: Literal["median", "mean"] | float | None = None
    drop_rows: bool = False
    clip: tuple[float, float] | None = None
    labels: str | None = None  # is never imputed or clipped: a row without a good label is left out
    classes: int | None = None

    def as_plain(self) -> dict[str, object]:
        return {
            "impute": self.impute,
            "drop_rows": self.drop_rows,
            "clip": None if self.clip is None else list(self.clip),
            "labels": self.labels,
            "classes": self.classes,
        }


@dataclass(frozen=True)
class Change:
    row: int
    column: str
    was: float | str | None  # None: missing
    now: float | None

    def as_plain(self) -> dict[str, object]:
        was = repr(self.was) if isinstance(self.was, float) and not np.isfinite(self.was) else self.was
        return {"row": self.row, "column": self.column, "was": was, "now": self.now}


def is_bad(values: Array, missing: Array | None = None) -> Array:
    """NaN, infinite or missing, element by element."""
    bad = ~np.isfinite(values) if values.dtype.kind in "fc" else np.zeros(values.shape, bool)
    return bad if missing is None else bad | missing


def has_bad_label(values: Array, bad: Array, classes: int | None) -> Array:
    if classes is None:
        return bad
    with np.errstate(invalid="ignore"):
        return np.asarray(bad | (values < 0) | (values >= classes) | (values != np.floor(values)))


def cleaned(values: Array, bad: Array, fill: float | None, clip: tuple[float, float] | None) -> tuple[Array, Array]:
    """One column, any shape. Returns it, and where it is now another value."""
    found = values.copy()
    if clip is not None:
        low, high = (_fitting(bound, values.dtype) for bound in clip)
        with np.errstate(invalid="ignore"):
            np.clip(found, low, high, out=found)
        bad = bad & ~np.isinf(values) if values.dtype.kind == "f" else bad
    if fill is not None:
        found[bad] = _fitting(fill, values.dtype)
    different = found != values
    if values.dtype.kind == "f":
        different &= ~(np.isnan(found) & np.isnan(values))
    return found, different | (bad & (fill is not None))


def _fitting(value: float, dtype: np.dtype[np.generic]) -> float | int:
    """As the type can hold it."""
    if dtype.kind in "iu":
        limits = np.iinfo(dtype.name)
        return int(min(max(round(min(max(value, -1e19), 1e19)), limits.min), limits.max))
    if dtype.kind == "f":
        largest = float(np.finfo(dtype.name).max)
        return min(max(value, -largest), largest)
    return value


def listed(before: Array, after: Array, where: Array, first_row: int, names: list[str]) -> Iterator[Change]:
    """`where`: rows × positions × columns, as are the values."""
    for row, _, column in np.argwhere(where):
        place = row, _, column
        yield Change(first_row + int(row), names[column], float(before[place]), float(after[place]))
