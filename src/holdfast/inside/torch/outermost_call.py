"""Which call of a module is the outermost one of its thread, and where calls are left alone."""

from __future__ import annotations

import contextlib
import threading
from typing import Iterator


class _Here(threading.local):
    inside = False  # a call that is looked after already


here = _Here()


@contextlib.contextmanager
def left_alone(inside: bool = True) -> Iterator[None]:
    before, here.inside = here.inside, inside
    try:
        yield
    finally:
        here.inside = before
