"""Generators of the script's own that stand at a `yield`: where, and what their variables hold.

A new process makes the same generator and lets it come to that `yield`; then its variables are written over. Loops in its body
begin further on as those of the script do.
"""

from __future__ import annotations

import inspect
from types import GeneratorType
from typing import Any, Callable, Dict, Iterator, List, Tuple

from ..library_paths import is_library
from . import frame_variables, loop_heads, source_position
from .frames import CodeKey, instruction_of, key_of, stand_of
from .live_names import live_after
from .object_graph import Graph, Kind, Node, Ref, type_name
from .object_restore import Missing, Restoration
from .refusal import CannotPutBack, CannotTake


class Generators:
    """For one checkpoint."""

    def __init__(self, is_followed: Callable[[Any], bool]) -> None:
        self._is_followed = is_followed
        self.heads: Dict[CodeKey, List[loop_heads.Head]] = {}

    def kinds(self) -> List[Kind]:
        return [Kind("script_generator", _is_generator, self._take, _fits, _cannot_make, _fill, _children)]

    def _take(self, value: Any, graph: Graph) -> Tuple[Any, Any]:
        """One that has not begun is as the new process makes it, and so is one that is over; one on the stack is a frame."""
        if inspect.getgeneratorstate(value) != inspect.GEN_SUSPENDED:
            return (type_name(type(value)), None), None
        code, frame = value.gi_code, value.gi_frame
        if is_library(code.co_filename) or value.gi_yieldfrom is not None:
            raise CannotTake(f"the generator {value.__name__} is in the middle of its work")
        heads = loop_heads.taken(frame, source_position.standing(frame), self._is_followed)
        if self.heads.setdefault(key_of(code), heads) != heads:
            raise CannotTake(f"two generators of {value.__name__} are under way")
        held, live = frame.f_locals, live_after(code, instruction_of(frame))
        names = {name: graph.take(one) for name, one in held.items() if name in live}
        return (type_name(type(value)), key_of(code)), (stand_of(frame), names, heads)


def _is_generator(value: Any) -> bool:
    return isinstance(value, GeneratorType)


def _fits(node: Node, live: Any) -> bool:
    """Brought to its first `yield`, where it has not begun."""
    if node.parts is None:
        return True
    if key_of(live.gi_code) != node.of[1]:
        return False
    if inspect.getgeneratorstate(live) == inspect.GEN_CREATED:
        next(live, None)
    if live.gi_frame is None or stand_of(live.gi_frame) != node.parts[0]:
        raise CannotPutBack(f"the generator {live.__name__} does not stand where it stood")
    return True


def _children(node: Node, live: Any) -> Iterator[Tuple[Ref, Any]]:
    held = live.gi_frame.f_locals if node.parts is not None else {}
    for name, ref in node.parts[1].items() if node.parts is not None else ():
        if name in held:
            yield ref, held[name]


def _fill(node: Node, live: Any, restoration: Restoration) -> None:
    if node.parts is None:
        return
    _, names, heads = node.parts
    values = {}
    for name, ref in names.items():
        try:
            values[name] = restoration.object_of(ref)
        except Missing:
            continue
    frame_variables.write(live.gi_frame, values)
    for head in heads:
        if head.kind == "sequence":
            loop_heads.put_on(live.gi_frame, head)


def _cannot_make(node: Node, _restoration: Any) -> Any:
    if node.parts is None:
        raise Missing("a generator")
    raise CannotPutBack("a generator was under way that this process has not made")
