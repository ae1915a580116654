"""Loops over lists, tuples and dicts in a process that goes on: their first turn is the one that was under way.

Python calls nothing of ours when such a loop begins. So until the script has come to its place, the lines of its functions
around that place are traced: at the first line of the loop's body its iterator is put further on, and the variables of the
turn are written. Nothing is traced where there are no such loops; where a debugger traces, such a script cannot go on.
"""

from __future__ import annotations

import functools
import sys
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Sequence

from . import frame_variables
from .frames import Stand
from .loop_heads import Head, begin_with
from .refusal import CannotPutBack


class FirstTurns:
    def __init__(
        self,
        chain: List[Stand],
        heads: List[List[Head]],
        level_of: Callable[[FrameType], Optional[int]],
        loop_begins: Callable[[int, Head, FrameType], object],
        or_stop: Callable[..., Any],
        read: Sequence[Dict[str, Any]] = (),
    ) -> None:
        self._level_of, self._loop_begins, self._or_stop = level_of, loop_begins, or_stop
        self._names = {stand.key[1].rsplit(".", maxsplit=1)[-1] for stand in chain}
        self._pending: Dict[int, List[Head]] = {}
        for level, of_frame in enumerate(heads):
            found = [head for head in of_frame if head.kind == "sequence" and head.target]
            begins_with_values = level < len(read) and read[level] and of_frame
            found += [of_frame[-1]] if begins_with_values and of_frame[-1].kind in ("generator", "followed") else []
            if found:
                self._pending[level] = found
        self._trace: Any = None

    def install(self, users: List[FrameType]) -> None:
        """From here on; these frames are under way already."""
        if not self._pending or sys.gettrace() is not None:
            return
        self._trace = self._called
        for frame in users:
            frame.f_trace = self._called(frame, "call", None)
        sys.settrace(self._trace)

    def remove(self) -> None:
        if self._trace is not None and sys.gettrace() == self._trace:
            sys.settrace(None)
        self._trace = None

    def check(self) -> None:
        """Once the script has come to its place."""
        for head in (head for heads in self._pending.values() for head in heads if _is_further_on(head)):
            raise CannotPutBack(f"the loop on line {head.line} was not begun in the turn that was under way")

    def _called(self, frame: FrameType, _event: str, _argument: Any) -> Any:
        level = self._level_of(frame) if frame.f_code.co_name in self._names else None
        return functools.partial(self._line, level) if level in self._pending else None

    def _line(self, level: int, frame: FrameType, event: str, _argument: Any) -> Any:
        if self._trace is None:
            return None
        for head in self._pending.get(level, ()) if event == "line" else ():
            first, last = head.body
            if first <= frame.f_lineno <= last:
                self._pending[level].remove(head)
                self._loop_begins(level, head, frame)
                if _is_further_on(head):
                    frame_variables.write(frame, self._or_stop(begin_with, frame, head))
                break
        return functools.partial(self._line, level) if self._pending.get(level) else None


def _is_further_on(head: Head) -> bool:
    return head.kind == "sequence" and head.value > 1
