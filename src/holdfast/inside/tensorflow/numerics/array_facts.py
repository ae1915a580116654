"""What an array of a batch looks like, as events tell it."""

from __future__ import annotations

import sys
from typing import Any, Dict, List, Optional

from ...numerics.events import DISTINCT, Columns, Values
from ...numerics.labels import classes
from ...numerics.plain_numbers import told

MOST = 2_000_000  # numbers of an array that are looked at


def facts(array: Any, name: Optional[str] = None) -> Values:
    numpy: Any = sys.modules["numpy"]
    found: Values = {"shape": [int(n) for n in array.shape], "dtype": str(array.dtype)}
    if name is not None:
        found["name"] = name
    if array.dtype.kind not in "fiub" and array.dtype.itemsize != 2:
        return found
    values = numpy.asarray(array).reshape(-1)[:MOST].astype("float64")
    good = values[numpy.isfinite(values)]
    found["non_finite"] = int(values.size - good.size)
    if good.size:
        for key in ("min", "max", "mean", "std"):
            found[key] = told(float(getattr(good, key)()))
        found["integers"] = bool((good == numpy.floor(good)).all())
    return found


def of_input(array: Any, name: str) -> Values:
    numpy: Any = sys.modules["numpy"]
    found = facts(array, name)
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
    distinct = numpy.unique(array.reshape(-1)[:MOST])
    found["distinct"] = min(DISTINCT, len(distinct))
    found["one_hot"] = is_one_hot(array)
    if array.ndim == 2 and array.shape[1] > 1 and ((array == 0) | (array == 1)).all():
        found["several"] = bool((array.sum(axis=1) > 1).any())
    return found


def of_output(array: Any) -> Values:
    numpy: Any = sys.modules["numpy"]
    found = facts(array)
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
    if array.dtype.kind not in "fiub" or not array.size or not numpy.isfinite(array).all():
        return None
    if is_one_hot(array) and array.ndim == 2:
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
    if given.ndim < 2 or len(given) < 2 or not numpy.isfinite(given).all():
        return {}
    flat = given.reshape(len(given), -1).astype("float64")
    return {"spread": told(float(flat.std(axis=0).max())), "scale": told(float(numpy.abs(flat).max()))}
