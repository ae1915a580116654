"""What an array of a batch looks like, as events tell it."""

from __future__ import annotations

import math
import sys
from typing import Any, Dict, Iterator, List, NamedTuple, Optional

from ...numerics.events import DISTINCT, Columns, Values
from ...numerics.labels import classes
from ...numerics.plain_numbers import told
from .finiteness import AT_ONCE

MOST = 2_000_000  # numbers of an array that are looked at


class Moments(NamedTuple):
    """Of the finite ones among some numbers; how many those are."""

    finite: int
    non_finite: int
    min: float
    max: float
    mean: float
    std: float
    integers: bool


def chunks(array: Any) -> Iterator[Any]:
    """Flat, in double precision."""
    numpy: Any = sys.modules["numpy"]
    flat = numpy.asarray(array).reshape(-1)
    for begin in range(0, flat.size, AT_ONCE):
        yield flat[begin : begin + AT_ONCE].astype("float64")


def moments(array: Any) -> Moments:
    numpy: Any = sys.modules["numpy"]
    count, bad, low, high, mean, squares, integers = 0, 0, math.inf, -math.inf, 0.0, 0.0, True
    for values in chunks(array):
        good = values[numpy.isfinite(values)]
        bad += int(values.size - good.size)
        if not good.size:
            continue
        low, high = min(low, float(good.min())), max(high, float(good.max()))
        integers = integers and bool((good == numpy.floor(good)).all())
        there, its_mean = count + good.size, float(good.mean())
        squares += float(((good - its_mean) ** 2).sum()) + (its_mean - mean) ** 2 * count * good.size / there
        mean += (its_mean - mean) * good.size / there
        count = there
    return Moments(count, bad, low, high, mean, math.sqrt(squares / count) if count else 0.0, integers)


def first_rows(array: Any) -> Any:
    """As many as make no more numbers than are looked at; one at least."""
    return array[: max(1, MOST * len(array) // max(1, int(array.size)))] if array.ndim and array.size > MOST else array


def facts(array: Any, name: Optional[str] = None) -> Values:
    numpy: Any = sys.modules["numpy"]
    found: Values = {"shape": [int(n) for n in array.shape], "dtype": str(array.dtype)}
    if name is not None:
        found["name"] = name
    if array.dtype.kind not in "fiub" and array.dtype.itemsize != 2:
        return found
    all_in_all = moments(numpy.asarray(array).reshape(-1)[:MOST])
    found["non_finite"] = all_in_all.non_finite
    if all_in_all.finite:
        found.update({key: told(getattr(all_in_all, key)) for key in ("min", "max", "mean", "std")})  # type: ignore[typeddict-item]
        found["integers"] = all_in_all.integers
    return found


def of_input(array: Any, name: str) -> Values:
    numpy: Any = sys.modules["numpy"]
    found = facts(array, name)
    array = first_rows(array)
    if array.ndim == 2 and array.dtype.kind == "f" and array.size and len(array) > 1:
        clean = numpy.where(numpy.isfinite(array), array, 0.0)
        scales = numpy.abs(clean).max(axis=0)
        columns: Columns = {
            "count": int(array.shape[1]),
            "largest_scale": told(float(scales.max())),
            "largest_at": int(scales.argmax()),
            "smallest_scale": told(float(scales.min())),
            "constant": int((clean.max(axis=0) == clean.min(axis=0)).sum()),
        }
        found["columns"] = columns
    return found


def of_targets(array: Any) -> Values:
    numpy: Any = sys.modules["numpy"]
    found = facts(array)
    if array.dtype.kind not in "fiub" or not array.size:
        return found
    distinct: Any = numpy.empty(0)
    for values in chunks(array.reshape(-1)[:MOST]):
        if len(distinct) < DISTINCT:
            distinct = numpy.union1d(distinct, values)
    found["distinct"] = min(DISTINCT, len(distinct))
    array = first_rows(array)
    found["one_hot"] = is_one_hot(array)
    if array.ndim == 2 and array.shape[1] > 1 and ((array == 0) | (array == 1)).all():
        found["several"] = bool((array.sum(axis=1) > 1).any())
    return found


def of_output(array: Any) -> Values:
    numpy: Any = sys.modules["numpy"]
    found = facts(array)
    array = first_rows(array)
    if array.size and array.dtype.kind == "f" and numpy.isfinite(array).all():
        found["between_0_and_1"] = bool((array >= 0).all() and (array <= 1).all())
        if array.ndim > 1:
            found["rows_sum_to_1"] = bool(numpy.allclose(array.sum(axis=-1), 1.0, atol=1e-3))
        if array.ndim == 2 and len(array) > 3 and found["between_0_and_1"] and not found["rows_sum_to_1"]:
            found["columns_sum_to_1"] = bool(numpy.allclose(array.sum(axis=0), 1.0, atol=1e-3))
    return found


def is_one_hot(array: Any) -> bool:
    if array.ndim < 2 or array.shape[-1] < 2:
        return False
    zeros_and_ones = ((array == 0) | (array == 1)).all()
    return bool(zeros_and_ones and (array.sum(axis=-1) == 1).all())


def labels_of(array: Any) -> Optional[Any]:
    """As whole numbers, one for each row; None of what are no classes."""
    numpy: Any = sys.modules["numpy"]
    if array.dtype.kind not in "fiub" or not array.size or array.ndim > 2 or not numpy.isfinite(array).all():
        return None
    if is_one_hot(array):
        return array.argmax(axis=-1)
    if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1):
        flat = array.reshape(-1)
        whole = array.dtype.kind in "iub" or (flat == numpy.floor(flat)).all()
        return flat.astype("int64") if whole and len(numpy.unique(flat)) <= max(2, len(flat) // 2) else None
    return None


def classes_of(array: Any) -> List[Any]:
    labels = labels_of(array)
    return [] if labels is None else classes([int(one) for one in labels])


def correct_share(labels: Any, given: Any) -> Optional[float]:
    """Of the rows whose class is the model's guess."""
    if labels is None or given.ndim != 2 or len(given) != len(labels):
        return None
    if given.shape[1] == 1:
        threshold = 0.5 if (given >= 0).all() and (given <= 1).all() else 0.0
        return float(((given[:, 0] > threshold).astype("int64") == labels).mean())
    return float((given.argmax(axis=1) == labels).mean())


def spread_and_scale(given: Any) -> Dict[str, Any]:
    numpy: Any = sys.modules["numpy"]
    given = first_rows(given)
    if given.ndim < 2 or len(given) < 2 or not numpy.isfinite(given).all():
        return {}
    flat = given.reshape(len(given), -1).astype("float64")
    return {"spread": told(float(flat.std(axis=0).max())), "scale": told(float(numpy.abs(flat).max()))}
