"""Whether functions of the user's may be run once more than the script asks for, without its showing."""

from __future__ import annotations

import contextlib
import dis
from types import CodeType, FunctionType
from typing import Any, Iterable, List

from .user_lines import is_users

# What a function of the user's must not do if it is to be run once more than the script asks for.
SPEAKS = frozenset(
    [
        "print",
        "open",
        "write",
        "input",
        "breakpoint",
        "set_trace",
        "log",
        "info",
        "warning",
        "py_function",
        "numpy_function",
    ]
)
STORES = frozenset(("STORE_ATTR", "STORE_GLOBAL", "STORE_SUBSCR", "DELETE_ATTR", "STORE_DEREF"))
BEFORE_TRAINING = ("__init__", "build", "compile", "get_config", "from_config")  # methods that no step calls
FOLLOWED = 300  # functions, from one to those it names


def repeatable(functions: Iterable[Any]) -> bool:
    """Whether running the user's functions among these, and those they name, once more would go unnoticed. Libraries' own
    are taken to be."""
    left, seen = list(functions), set()
    while left:
        one = left.pop()
        if id(one) in seen or not isinstance(one, FunctionType) or not is_users(one.__code__.co_filename):
            continue
        seen.add(id(one))
        if not _quiet(one.__code__) or len(seen) > FOLLOWED:
            return False
        left += _named_by(one)
    return True


def _named_by(function: FunctionType) -> List[Any]:
    """Functions, and the methods of objects, that it reads from its module or the function around it."""
    held = [function.__globals__.get(name) for name in function.__code__.co_names]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # still empty
            held.append(cell.cell_contents)
    found: List[Any] = []
    for one in held:
        function_of = getattr(one, "python_function", one)  # of a tf.function
        found.append(getattr(function_of, "__func__", function_of))
        if not isinstance(one, (type, FunctionType)):
            found += methods_of(type(one))
    return found


def methods_of(kind: type) -> List[Any]:
    """That a step may call."""
    return [one for base in kind.__mro__ for name, one in vars(base).items() if name not in BEFORE_TRAINING]


def _quiet(code: CodeType) -> bool:
    if set(code.co_names) & SPEAKS:
        return False
    if any(step.opname in STORES for step in dis.get_instructions(code)):
        return False
    return all(_quiet(one) for one in code.co_consts if isinstance(one, CodeType))
