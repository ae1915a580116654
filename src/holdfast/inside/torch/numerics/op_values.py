"""What an operation was given when its result was not finite, as one clause: "log of 0.0", "division by 0.0"."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from ...numerics.plain_numbers import words
from .finite import extremes, is_float

UNNAMED = {"__get__", "__set__", "type", "cpu", "cuda", "detach", "clone", "backward"}


def plain_name(name: str) -> str:
    """Of an operation, whichever way it was called: `log_`, `__rtruediv__`, `LogBackward0`."""
    name = name.strip("_").lower()
    return {"truediv": "div", "rtruediv": "div", "rdiv": "div", "true_divide": "div", "divide": "div", "itruediv": "div",
            "rpow": "pow", "ipow": "pow", "float_power": "pow", "vector_norm": "norm", "linalgvectornorm": "norm",
            "linalg_vector_norm": "norm", "matmul": "matmul", "rmatmul": "matmul", "imul": "mul", "rmul": "mul",
            "multiply": "mul", "iadd": "add", "radd": "add", "isub": "sub", "rsub": "sub", "subtract": "sub"}.get(
        name, name
    )  # fmt: skip


def clause(torch: Any, op: str, operands: List[Any], result: Any = None) -> Optional[str]:
    """`operands` are what it was given, tensors and numbers, in order."""
    name = plain_name(op)
    explain = _EXPLAINED.get(name)
    said = explain(torch, operands) if explain is not None and operands else None
    return said or _by_size(torch, name, operands, result)


def _number(value: Any) -> Optional[float]:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _least(torch: Any, value: Any) -> Optional[float]:
    if (number := _number(value)) is not None:
        return number
    found = extremes(torch, value) if isinstance(value, torch.Tensor) else None
    return None if found is None else found[0]


def _largest(torch: Any, value: Any) -> Optional[float]:
    if (number := _number(value)) is not None:
        return number
    found = extremes(torch, value) if isinstance(value, torch.Tensor) else None
    return None if found is None else found[1]


def _log(torch: Any, operands: List[Any]) -> Optional[str]:
    least = _least(torch, operands[0])
    return f"log of {words(least)}" if least is not None and least <= 0 else None


def _log1p(torch: Any, operands: List[Any]) -> Optional[str]:
    least = _least(torch, operands[0])
    return f"log1p of {words(least)}" if least is not None and least <= -1 else None


def _sqrt(torch: Any, operands: List[Any]) -> Optional[str]:
    least = _least(torch, operands[0])
    if least is None or least > 0:
        return None
    return f"square root of {words(least)}"


def _has(torch: Any, value: Any, number: float) -> bool:
    if (own := _number(value)) is not None:
        return own == number
    return isinstance(value, torch.Tensor) and value.numel() > 0 and bool((value.detach() == number).any())


def _div(torch: Any, operands: List[Any]) -> Optional[str]:
    if len(operands) < 2 or not _has(torch, operands[1], 0.0):
        return None
    both = isinstance(operands[0], torch.Tensor) and isinstance(operands[1], torch.Tensor)
    if both:
        with torch.no_grad():
            zeros = ((operands[1].detach() == 0) & (operands[0].detach() == 0)).any()
        if bool(zeros):
            return "0.0 divided by 0.0"
    return "division by 0.0"


def _reciprocal(torch: Any, operands: List[Any]) -> Optional[str]:
    return "division by 0.0" if _has(torch, operands[0], 0.0) else None


def _exp(torch: Any, operands: List[Any]) -> Optional[str]:
    largest = _largest(torch, operands[0])
    return f"exp of {words(largest)}" if largest is not None and largest > 10 else None


def _pow(torch: Any, operands: List[Any]) -> Optional[str]:
    if len(operands) < 2:
        return None
    base, exponent = operands[:2]
    least, power = _least(torch, base), _least(torch, exponent)
    if least is None or power is None:
        return None
    if _has(torch, base, 0.0) and power < 0:
        return f"0.0 to the power of {words(power)}"
    if least < 0 and power != int(power):
        return f"{words(least)} to the power of {words(power)}"
    return None


def _beyond_one(name: str) -> Callable[[Any, List[Any]], Optional[str]]:
    def explain(torch: Any, operands: List[Any]) -> Optional[str]:
        found = extremes(torch, operands[0]) if isinstance(operands[0], torch.Tensor) else None
        if found is None:
            return None
        worst = max(found, key=abs)
        return f"{name} of {words(worst)}" if abs(worst) >= 1 else None

    return explain


def _softmax(torch: Any, operands: List[Any]) -> Optional[str]:
    value = operands[0]
    if is_float(torch, value) and value.dim():
        with torch.no_grad():
            if bool((value.detach() == float("-inf")).all(-1).any()):
                return "a row that is -Inf throughout"
    return None


def _by_size(torch: Any, name: str, operands: List[Any], result: Any) -> Optional[str]:
    """The largest number it was given, and in which precision."""
    best, kind = None, ""
    for operand in operands:
        found = extremes(torch, operand) if is_float(torch, operand) else None
        if found is not None:
            worst = max(found, key=abs)
            if best is None or abs(worst) > abs(best):
                best, kind = worst, str(operand.dtype).replace("torch.", "")
    if best is None:
        return None
    kind = str(result.dtype).replace("torch.", "") if is_float(torch, result) else kind
    return f"{words(best)} in {kind}"


def size_told(said: str) -> Optional[float]:
    """Of a clause that tells nothing but the largest number, that number."""
    number, among, kind = said.partition(" in ")
    try:
        return abs(float(number)) if among and kind.startswith("float") else None
    except ValueError:  # NaN and infinity have words
        return None


def _labels(_torch: Any, operands: List[Any]) -> Optional[str]:
    """A mean over the labels that count, of which there is none."""
    if len(operands) < 2 or not hasattr(operands[1], "is_floating_point") or operands[1].is_floating_point():
        return None
    target = operands[1].detach()
    if not target.numel() or int(target.min()) != int(target.max()) or int(target.max()) >= 0:
        return None
    return f"no label that counts: all {target.numel()} are {int(target.max())}, which is passed over"


_EXPLAINED: Dict[str, Callable[[Any, List[Any]], Optional[str]]] = {
    "log": _log, "log2": _log, "log10": _log, "log1p": _log1p, "sqrt": _sqrt, "rsqrt": _sqrt, "div": _div,
    "reciprocal": _reciprocal, "exp": _exp, "expm1": _exp, "exp2": _exp, "pow": _pow, "acos": _beyond_one("acos"),
    "asin": _beyond_one("asin"), "arccos": _beyond_one("acos"), "arcsin": _beyond_one("asin"),
    "atanh": _beyond_one("atanh"), "cross_entropy": _labels, "nll_loss": _labels, "softmax": _softmax, "log_softmax": _softmax,
}  # fmt: skip
