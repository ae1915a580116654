"""Which loops over data have trained, in the turn of the outer loops that is under way.

A script that is started again enters such a turn at its top. So a place in it can be gone on from only if nothing before
it in the same turn trains: a validation after the training of an epoch cannot.
"""

from __future__ import annotations

import ast
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import frames, source_position
from .frames import Stand
from .refusal import CannotTake

Turn = Dict[Tuple[int, int], Any]  # a loop around, by frame and line -> the value its variable has

_loops: Dict[Any, List[Tuple[int, str]]] = {}


class _Trail:
    __slots__ = ("chain", "steps", "trained", "turn")

    def __init__(self, chain: List[Stand], turn: Turn, steps: int) -> None:
        self.chain, self.turn = chain, turn
        self.steps = steps  # before it
        self.trained = False


class Trails:
    def __init__(self, is_one_ahead: Callable[[frames.CodeKey], bool] = lambda _code: False) -> None:
        self._is_one_ahead = is_one_ahead
        self._last: Optional[_Trail] = None
        self._trails: Dict[Tuple[Stand, ...], _Trail] = {}  # the newest of each place

    def knows(self, chain: List[Stand]) -> bool:
        return tuple(self._of_loops(chain)) in self._trails

    def begins(self, frame: FrameType, steps: int) -> None:
        """An iterator is asked for its first batch, or a step begins that needs none."""
        self._note(steps)
        found = frames.users(frame)
        chain, turn = self._of_loops(frames.stands(found)), turn_of(found)
        before = self._trails.get(tuple(chain))
        self._last = self._trails[tuple(chain)] = _Trail(chain, turn, steps)
        self._last.trained = before is not None and before.trained and before.turn == turn

    @property
    def is_begun(self) -> bool:
        return bool(self._trails)

    def trained_before(self, found: List[FrameType], chain: List[Stand], steps: int) -> str:
        """The place before this one, in the same turn, that trains; nothing where there is none."""
        self._note(steps)
        chain, turn = self._of_loops(chain), turn_of(found)
        for trail in self._trails.values():
            same_turn = all(turn.get(loop, value) == value for loop, value in trail.turn.items())
            apart = _parting(trail.chain, chain)
            if trail.trained and same_turn and apart is not None and _precedes(*apart):
                return apart[0].words
        return ""

    def _of_loops(self, chain: List[Stand]) -> List[Stand]:
        """Without a loader that asks for its first batch at another place than for the next ones."""
        return chain[:-1] if chain and self._is_one_ahead(chain[-1].key) else chain

    def _note(self, steps: int) -> None:
        if self._last is not None and steps > self._last.steps:
            self._last.trained = True


def _parting(one: List[Stand], other: List[Stand]) -> Optional[Tuple[Stand, Stand]]:
    return next((pair for pair in zip(one, other) if pair[0] != pair[1]), None)


def _precedes(first: Stand, second: Stand) -> bool:
    return first.key == second.key and first.instruction < second.instruction


def turn_of(found: List[FrameType]) -> Turn:
    turn = {}
    for level, frame in enumerate(found):
        key = (frame.f_code, frames.instruction_of(frame))
        if key not in _loops:
            _loops[key] = _around(frame)
        if _loops[key]:
            held = frame.f_locals
            turn.update({(level, line): _plain(held.get(name)) for line, name in _loops[key]})
    return turn


def _around(frame: FrameType) -> List[Tuple[int, str]]:
    try:
        loops = source_position.standing(frame).around
    except CannotTake:
        return []
    return [(loop.lineno, loop.target.id) for loop in loops if isinstance(loop.target, ast.Name)]


def _plain(value: Any) -> Any:
    return value if isinstance(value, (int, str)) else id(value)


class TurnStarts:
    """Random state about when each turn began that is under way: where the data of the turn before was over.

    A script that is started again enters a turn at its top: what it draws there (an order of the data) must be drawn again.
    """

    def __init__(self) -> None:
        self.states: Dict[Tuple[int, int], Tuple[Any, Any]] = {}  # by loop: the value of its variable, the state
        self.last: Any = None  # when data was over

    def note(self, found: List[FrameType]) -> None:
        """An iterator is asked for its first batch."""
        for loop, value in turn_of(found).items():
            if loop not in self.states or self.states[loop][0] != value:
                self.states[loop] = (value, self.last)
