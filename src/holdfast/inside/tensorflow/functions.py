"""The tf.functions that are being traced."""

from __future__ import annotations

from types import FrameType
from typing import Any, Iterator, Optional

from . import seams


def functions_on_stack(frame: Optional[FrameType], function_class: Any) -> Iterator[Any]:
    """Innermost first. Walking the stack is slow, and tracing is slower."""
    while frame is not None:
        owner = frame.f_locals.get("self") if frame.f_code.co_name == seams.CALL else None
        if isinstance(owner, function_class):
            yield owner
        frame = frame.f_back
