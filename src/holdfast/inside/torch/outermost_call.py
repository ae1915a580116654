"""Which call of a module is the outermost one of its thread, where calls are left alone, and what the latest were given."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from typing import Any, Deque, Iterator, Tuple

NOTED = 8  # outermost calls since the last backward pass; a step of most models is one or two

Call = Tuple[Any, Any, Any]  # a module or a BatchFunction, its arguments, its keyword arguments


class _Here(threading.local):
    limit = 0

    def __init__(self) -> None:
        self.inside = False  # a call that is looked after already
        self.again = False  # what runs is a step's computation once more, and nobody's training
        self.calls: Deque[Call] = deque(maxlen=self.limit)


here = _Here()


def begin_noting() -> None:
    """Whoever asks for it lets go of the calls again, once a step: batches are kept alive by them."""
    _Here.limit = NOTED
    here.calls = deque(maxlen=NOTED)


@contextlib.contextmanager
def left_alone(inside: bool = True) -> Iterator[None]:
    before, here.inside = here.inside, inside
    try:
        yield
    finally:
        here.inside = before


@contextlib.contextmanager
def running_again() -> Iterator[None]:
    """For a computation that is run once more to be looked at: nothing in it is a step's."""
    before, here.again = here.again, True
    try:
        with left_alone():
            yield
    finally:
        here.again = before
