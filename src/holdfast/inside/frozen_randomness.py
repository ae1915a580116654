"""A function that draws at random, made to give a constant: in this thread, for a while."""

from __future__ import annotations

import contextlib
import functools
import threading
from typing import Any, Callable, Iterator, Optional


@contextlib.contextmanager
def constant_here(owner: Any, name: str, value_of: Optional[Callable[..., Any]]) -> Iterator[None]:
    """`value_of` gets the call's arguments; without it the first argument comes back as it is. Where there is no such
    function, nothing is done."""
    original = getattr(owner, name, None)
    if original is None:
        yield
        return
    mine = threading.get_ident()

    @functools.wraps(original)
    def constant(*args: Any, **kwargs: Any) -> Any:
        if threading.get_ident() != mine:
            return original(*args, **kwargs)
        if value_of is None:
            return args[0] if args else next(iter(kwargs.values()))
        return original(*args, **kwargs) * 0 + value_of(*args, **kwargs)

    inherited = name not in vars(owner)
    setattr(owner, name, constant)
    try:
        yield
    finally:
        if inherited:
            delattr(owner, name)
        else:
            setattr(owner, name, original)
