"""Whether values are finite, and how large: by NumPy on the memory that a tensor on the CPU has, without a copy."""

from __future__ import annotations

import math
import sys
from typing import Any, Iterable, List, Optional

AT_ONCE = 1 << 18  # numbers: what is made of them on the way lies beside what training holds
FLOATS = ("float32", "float64", "float16", "bfloat16")


def quiet() -> Any:
    """For a while NumPy does not warn of what is looked for here."""
    return sys.modules["numpy"].errstate(all="ignore")


def is_float(value: Any) -> bool:
    return _dtype_name(value) in FLOATS


def _dtype_name(value: Any) -> str:
    return str(getattr(getattr(value, "dtype", None), "name", ""))


def array_of(value: Any) -> Any:
    """As NumPy has it; halves in single precision, which NumPy sums up faster and without overflow."""
    numpy: Any = sys.modules["numpy"]
    array = value.__array__() if hasattr(value, "__array__") else numpy.asarray(value)
    return array.astype("float32") if array.dtype.itemsize == 2 else array


def sum_of_squares(value: Any) -> Optional[float]:
    """None of what is no float. 2 µs and one pass of BLAS; infinite also where only the sum is."""
    if not is_float(value):
        return None
    flat = array_of(value).reshape(-1)
    return float(flat.dot(flat))


def squares_between(old: Any, new: Any) -> float:
    """The sum of squares of what changed, without a copy of the whole."""
    before, after, total = array_of(old).reshape(-1), array_of(new).reshape(-1), 0.0
    for begin in range(0, before.size, AT_ONCE):
        change = after[begin : begin + AT_ONCE] - before[begin : begin + AT_ONCE]
        total += float(change.dot(change))
    return total


def is_finite(value: Any) -> bool:
    total = sum_of_squares(value)
    if total is None or math.isfinite(total):
        return True
    numpy: Any = sys.modules["numpy"]
    return bool(numpy.isfinite(array_of(value)).all())


def first_bad(values: Iterable[Any]) -> Optional[int]:
    for number, value in enumerate(values):
        if not is_finite(value):
            return number
    return None


def norms(values: Iterable[Any]) -> List[float]:
    return [math.sqrt(sum_of_squares(value) or 0.0) for value in values]
