"""Running some of the user's model beside its training: nothing it assigns is kept, and nothing it draws is missed."""

from __future__ import annotations

import contextlib
import dis
import functools
import threading
from types import CodeType, FunctionType
from typing import Any, Iterable, Iterator

from ...numerics.user_lines import is_users
from .. import random_state, seams
from ..nesting import nesting

WRITES = ("assign", "assign_add", "assign_sub", "scatter_add", "scatter_sub", "scatter_update", "batch_scatter_update")
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


@contextlib.contextmanager
def untouched() -> Iterator[None]:
    """Assignments to variables do nothing in this thread, and the random state is put back."""
    before = random_state.capture()
    nesting.depth += 1
    with contextlib.ExitStack() as stack:
        for variable_class in seams.variable_classes():
            for name in WRITES:
                if name in vars(variable_class):
                    stack.enter_context(_ignored(variable_class, name))
        try:
            yield
        finally:
            nesting.depth -= 1
            random_state.restore(before)


@contextlib.contextmanager
def _ignored(owner: Any, name: str) -> Iterator[None]:
    original, mine = vars(owner)[name], threading.get_ident()

    @functools.wraps(original)
    def ignore(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self if threading.get_ident() == mine else original(self, *args, **kwargs)

    setattr(owner, name, ignore)
    try:
        yield
    finally:
        setattr(owner, name, original)


def repeatable(functions: Iterable[Any]) -> bool:
    """Whether running the user's functions among these once more would go unnoticed. Libraries' own are taken to be."""
    return all(_quiet(one.__code__) for one in functions if isinstance(one, FunctionType) and _of_user(one))


def _of_user(function: Any) -> bool:
    return is_users(function.__code__.co_filename)


def _quiet(code: CodeType) -> bool:
    if set(code.co_names) & SPEAKS:
        return False
    steps = list(dis.get_instructions(code))
    if any(step.opname in STORES for step in steps) or any(map(_draws, steps, steps[1:])):
        return False
    return all(_quiet(one) for one in code.co_consts if isinstance(one, CodeType))


def _draws(step: dis.Instruction, following: dis.Instruction) -> bool:
    """`tf.random`: its operations keep their state where nobody can put it back."""
    return step.argval in ("tf", "tensorflow") and following.argval == "random"
