"""The edge between Holdfast and the user's program: no error of ours gets past it.

The one place inside the training process where every exception is caught (the bootstrap, which runs before this is loaded,
has its own). What is swallowed leaves an event, once.
"""

from __future__ import annotations

import functools
import sys
from types import TracebackType
from typing import Any, Callable, Optional, Sequence, Tuple, Type, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])

FAILURES = 20  # after so many, hooks do nothing any more
EVERYTHING = "*"  # the place that is told then


class _Edge:
    def __init__(self) -> None:
        self.told: set[tuple[str, str]] = set()
        self.failures = 0
        self.tell: Optional[Callable[[str, str], None]] = None


_edge = _Edge()


def on_failure(tell: Callable[[str, str], None]) -> None:
    """Where failures are reported: a function of a place and a reason."""
    _edge.tell = tell


def failed(place: str, error: BaseException) -> None:
    _edge.failures += 1
    _tell(place, f"{type(error).__name__}: {error}"[:300])
    if _edge.failures == FAILURES:
        _tell(EVERYTHING, f"its hooks failed {FAILURES} times and are switched off")


def _tell(place: str, reason: str) -> None:
    """Once for each."""
    if (place, reason) in _edge.told or _edge.tell is None:
        return
    _edge.told.add((place, reason))
    try:
        _edge.tell(place, reason)
    except Exception:  # noqa: BLE001 - the record itself is broken: go on without it
        _edge.failures = FAILURES + 1


def hide_our_frame(error: BaseException) -> None:
    """Takes the frame this is called from off a traceback that passes through it: the user's own error is not ours to
    appear in. From Python 3.11 on a bare `raise` after it puts no new entry there; before, ours stays visible."""
    trace = error.__traceback__
    if trace is not None and trace.tb_frame is sys._getframe(1):
        error.__traceback__ = trace.tb_next


def guarded(function: Function) -> Function:
    """For what is done beside the user's call. Never wrap the user's call: an exception of the script must go on."""

    place = getattr(function, "__qualname__", repr(function))

    def safe(*args: Any, **kwargs: Any) -> Any:
        if _edge.failures >= FAILURES:
            return None
        try:
            return function(*args, **kwargs)
        except Exception as error:  # noqa: BLE001 - the edge
            failed(place, error)
            return None

    def safe_of_one(argument: Any) -> Any:
        """Hooks that run in every step take one argument: half the cost of passing on any number of them."""
        if _edge.failures >= FAILURES:
            return None
        try:
            return function(argument)
        except Exception as error:  # noqa: BLE001 - the edge
            failed(place, error)
            return None

    return functools.wraps(function)(safe_of_one if _takes_one(function) else safe)  # type: ignore[return-value]


def outcome(call: Callable[..., Any], *args: Any) -> Tuple[Any, Optional[Exception]]:
    """What a call returns, or the error it ended in: for callers that report it, or judge whose error it is."""
    try:
        return call(*args), None
    except Exception as error:  # noqa: BLE001 - the edge; the caller tells it
        hide_our_frame(error)
        return None, error


class on_error:
    """Calls `do` when the block ends in an error, whichever; the error goes on."""

    def __init__(self, do: Callable[[BaseException], Any]) -> None:
        self._do = do

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, _kind: Optional[Type[BaseException]], error: Optional[BaseException], _trace: Optional[TracebackType]
    ) -> None:
        if error is not None:
            self._do(error)


def guarded_hook(
    functions: Sequence[Callable[[Any], Any]], unless: Callable[[], bool]
) -> Callable[[Any, Any, Any], None]:
    """The same for a hook that a framework calls with an object and two arguments more: one frame for all functions that
    are told of it. Where one fails those behind it are not told this time."""

    def hook(subject: Any, _args: Any, _kwargs: Any) -> None:
        if unless() or _edge.failures >= FAILURES:
            return
        function: Any = None
        try:
            for function in functions:
                function(subject)
        except Exception as error:  # noqa: BLE001 - the edge
            failed(getattr(function, "__qualname__", repr(function)), error)

    return hook


def _takes_one(function: Callable[..., Any]) -> bool:
    """A bound method of one argument more than itself."""
    code = getattr(function, "__code__", None)
    bound = getattr(function, "__self__", None) is not None
    return (
        bound and code is not None and code.co_argcount == 2 and not code.co_flags & 0x0C and not function.__defaults__
    )
