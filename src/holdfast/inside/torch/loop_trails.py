"""Which loops over data have trained, in the turn of the outer loops that is under way.

A script that is started again enters such a turn at its top. So a place in it can be gone on from only if nothing before
it in the same turn trains: a validation after the training of an epoch cannot.
"""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from ..script_state import frames, source_position
from ..script_state.frames import Stand
from ..script_state.refusal import CannotTake

_turns: Dict[Any, Tuple[str, ...]] = {}


class Trail(NamedTuple):
    chain: List[Stand]
    steps: int  # before it


class Trails:
    def __init__(self) -> None:
        self._turn: Optional[Tuple[Any, ...]] = None
        self._trails: List[Trail] = []

    def begins(self, frame: FrameType, steps: int) -> None:
        """An iterator is asked for its first batch."""
        found = frames.users(frame)
        turn = tuple(value for one in found for value in _turn(one))
        if turn != self._turn:
            self._turn, self._trails = turn, []
        chain = frames.stands(found)
        if not self._trails or self._trails[-1].chain != chain:
            self._trails.append(Trail(chain, steps))

    def check(self, chain: List[Stand], steps: int) -> None:
        for trail, after in zip(self._trails, [*(one.steps for one in self._trails[1:]), steps]):
            if trail.chain != chain and after > trail.steps and _precedes(trail.chain, chain):
                raise CannotTake(
                    f"the loop at {trail.chain[-1].words} trains before the one at {chain[-1].words}, "
                    "and would train again when the script is started again"
                )


def _precedes(one: List[Stand], other: List[Stand]) -> bool:
    for first, second in zip(one, other):
        if first != second:
            return first.key == second.key and first.instruction < second.instruction
    return False


def _turn(frame: FrameType) -> List[Any]:
    """Values of the variables of the loops around."""
    key = (frame.f_code, frames.instruction_of(frame))
    if key not in _turns:
        try:
            loops = source_position.standing(frame).around
        except CannotTake:
            loops = []
        _turns[key] = tuple(loop.target.id for loop in loops if isinstance(loop.target, ast.Name))
    names = _turns[key]
    held = frame.f_locals if names else {}
    return [(frames.key_of(frame.f_code), name, _plain(held.get(name))) for name in names]


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, str)) else id(value)
