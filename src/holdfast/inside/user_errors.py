"""The user's own errors, on their way through calls of ours: always passed on, and shown without our frames.

The one place that looks at whatever a call of the user's raises. From Python 3.11 on an error that leaves a `with` block
gets no new entry for it; before, that one of ours stays visible.
"""

from __future__ import annotations

import os
from types import TracebackType
from typing import Any, Callable, Optional, Type

OURS = os.path.dirname(os.path.abspath(__file__)) + os.sep


class _Passing:
    """`with passing:` around a call of the user's. An object and no generator: it is entered several times a step."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, _kind: Optional[Type[BaseException]], error: Optional[BaseException], _trace: Optional[TracebackType]
    ) -> None:
        if error is not None:
            show_without_ours(error)


passing = _Passing()


def passing_on(call: Callable[..., Any]) -> Callable[..., Any]:
    """The outermost layer of what is wrapped around a call of the user's. It costs nothing until an error comes, and layers further
    in need nothing of the kind: two method calls a layer and call were a tenth of what a short step paid."""

    def passed_on(*args: Any, **kwargs: Any) -> Any:
        try:
            return call(*args, **kwargs)
        except BaseException as error:
            show_without_ours(error)
            raise

    return passed_on


def show_without_ours(error: BaseException) -> None:
    error.__traceback__ = _without_ours(error.__traceback__)


def _without_ours(trace: Optional[TracebackType]) -> Optional[TracebackType]:
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    kept = trace
    while kept is not None:
        while kept.tb_next is not None and _is_ours(kept.tb_next):
            kept.tb_next = kept.tb_next.tb_next
        kept = kept.tb_next
    return trace


def _is_ours(trace: TracebackType) -> bool:
    return trace.tb_frame.f_code.co_filename.startswith(OURS)
