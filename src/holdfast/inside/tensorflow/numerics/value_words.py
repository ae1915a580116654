"""The values at which an operation gave something non-finite, as a clause: "log of 0.0", "exp of 812.5"."""

from __future__ import annotations

import sys
from typing import Any, List, Optional

from ...numerics.plain_numbers import words
from .finiteness import array_of, is_float

OF_ONE = {
    "Log": "log of {0}",
    "Log1p": "log1p of {0}",
    "Sqrt": "square root of {0}",
    "Rsqrt": "1 / square root of {0}",
    "Exp": "exp of {0}",
    "Expm1": "exp of {0}",
    "Reciprocal": "1 / {0}",
    "Inv": "1 / {0}",
    "Acos": "arccos of {0}",
    "Asin": "arcsin of {0}",
    "Atanh": "arctanh of {0}",
    "Acosh": "arccosh of {0}",
    "Square": "{0} squared",
    "SqrtGrad": "gradient of the square root at {0}",
    "RsqrtGrad": "gradient of 1 / square root at {0}",
}
OF_TWO = {
    "RealDiv": "{0} divided by {1}",
    "Div": "{0} divided by {1}",
    "FloorMod": "{0} modulo {1}",
    "Mod": "{0} modulo {1}",
    "Pow": "{0} to the power of {1}",
    "Xlogy": "{0} times log of {1}",
    "Xdivy": "{0} divided by {1}",
    "Mul": "{0} times {1}",
    "AddV2": "{0} plus {1}",
    "Add": "{0} plus {1}",
    "Sub": "{0} minus {1}",
}
# Not defined there, whatever the size of the numbers: a smaller rate does not mend them.
UNDEFINED = frozenset(
    [
        "Log",
        "Log1p",
        "Sqrt",
        "Rsqrt",
        "Reciprocal",
        "Inv",
        "Acos",
        "Asin",
        "Atanh",
        "Acosh",
        "SqrtGrad",
        "RsqrtGrad",
        "RealDiv",
        "Div",
        "FloorMod",
        "Mod",
        "Xlogy",
        "Xdivy",
    ]
)


def is_undefined(kind: str, values: Optional[str]) -> bool:
    return kind in UNDEFINED or (kind == "Pow" and "power of -" in str(values))


def clause(kind: str, inputs: List[Any], outputs: List[Any]) -> Optional[str]:
    """None where nothing is known but the operation."""
    numpy: Any = sys.modules["numpy"]
    arrays = [array_of(one) for one in inputs if is_float(one)]
    output = next((array_of(one) for one in outputs if is_float(one)), None)
    if output is None or not arrays:
        return None
    bad = numpy.argwhere(~numpy.isfinite(output))
    at = tuple(bad[0]) if len(bad) else None
    form = OF_ONE.get(kind) or OF_TWO.get(kind)
    if form is not None and at is not None and len(arrays) >= (2 if kind in OF_TWO else 1):
        return form.format(*(words(_value(one, output, at)) for one in arrays[:2]))
    largest = max((float(numpy.abs(one).max()) for one in arrays if one.size), default=0.0)
    return f"values up to {words(largest)} in {inputs_dtype(inputs)}"


def inputs_dtype(inputs: List[Any]) -> str:
    return next((str(one.dtype.name) for one in inputs if is_float(one)), "")


def _value(array: Any, output: Any, at: Any) -> float:
    """Of an input that was made as large as the output."""
    numpy: Any = sys.modules["numpy"]
    if array.shape == output.shape:
        return float(array[at])
    try:
        return float(numpy.broadcast_to(array, output.shape)[at])
    except ValueError:
        return float(array.reshape(-1)[0])
