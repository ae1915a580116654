"""Which loops over data have trained, in the turn of the outer loops that is under way.

A script that is started again enters such a turn at its top. So a place in it can be gone on from only if nothing before
it in the same turn trains: a validation after the training of an epoch cannot.
"""

from __future__ import annotations

import ast
import itertools
from types import FrameType
from typing import Any, Callable, Dict, List, Optional, Tuple

from . import frames, loop_heads, source_position
from .frames import Stand
from .refusal import CannotTake

PLACE, ALL_LATE = (
    "place",
    "all late",
)  # can be gone on from; like all that are known it comes after an update in its turn

CYCLE = itertools.cycle
Turn = Dict[Tuple[int, int], Any]  # a loop around, by frame and line -> the value its variable has

_loops: Dict[Any, List[Tuple[int, List[ast.expr]]]] = {}


class _Trail:
    __slots__ = ("chain", "is_late", "steps", "trained", "turn")

    def __init__(self, chain: List[Stand], turn: Turn, steps: int) -> None:
        self.chain, self.turn = chain, turn
        self.steps = steps  # before it
        self.trained = False
        self.is_late = False  # something trains before it in its turn


class Trails:
    def __init__(self, is_one_ahead: Callable[[frames.CodeKey], bool] = lambda _code: False) -> None:
        self._is_one_ahead = is_one_ahead
        self._last: Optional[_Trail] = None
        self._trails: Dict[Tuple[Stand, ...], _Trail] = {}  # the newest of each place
        self._trained: Dict[
            Tuple[Stand, ...], _Trail
        ] = {}  # the newest of each place that has: a validation came since, say
        self._updates: Dict[Tuple[Stand, ...], _Trail] = {}
        self._first: Optional[int] = None  # updates before the first place
        self._told = 0

    def visited(self, frame: FrameType, steps: int) -> str:
        """A place in a loop that may have no loader: what it is found to be."""
        found = frames.users(frame)
        chain = frames.stands(found)
        if tuple(self._of_loops(chain)) not in self._trails:
            self.begins(frame, steps)
            return ""
        if not self.trained_before(found, chain, steps):
            return PLACE
        self.begins(frame, steps)
        return ALL_LATE if self.are_late else ""

    def begins(self, frame: FrameType, steps: int) -> None:
        """An iterator is asked for its first batch, or a step begins that needs none."""
        self._note(steps)
        self._first = steps if self._first is None else self._first
        found = frames.users(frame)
        chain, turn = self._of_loops(frames.stands(found)), turn_of(found)
        before = self._trails.get(tuple(chain))
        self._last = self._trails[tuple(chain)] = _Trail(chain, turn, steps)
        self._last.trained = before is not None and before.trained and before.turn == turn
        self._last.is_late = before is not None and before.is_late

    @property
    def is_begun(self) -> bool:
        return bool(self._trails)

    def trained_before(self, found: List[FrameType], chain: List[Stand], steps: int) -> str:
        """The place before this one, in the same turn, that trains; nothing where there is none."""
        self._note(steps)
        chain, turn = self._of_loops(chain), turn_of(found)
        for trail in [*self._trails.values(), *self._trained.values(), *self._updates.values()]:
            level = _parting(trail.chain, chain)
            if not trail.trained or level is None or not _precedes(trail.chain[level], chain[level]):
                continue
            if _same_turn(trail.turn, turn, level):
                if tuple(chain) in self._trails:
                    self._trails[tuple(chain)].is_late = True
                return trail.chain[level].words
        return ""

    def updated(self, frame: FrameType, steps: int) -> None:
        """The weights are about to change. In a loop without a loader the places are no loops: one of them may come after this."""
        found = frames.users(frame)
        trail = self._updates[tuple(frames.stands(found))] = _Trail(frames.stands(found), turn_of(found), steps)
        trail.trained = True
        self._told += 1

    def has_missed(self, steps: int) -> bool:
        """An update since the first place that `updated` was not told of."""
        return self._first is not None and steps - self._first != self._told

    @property
    def are_late(self) -> bool:
        """All places that are known come after an update in their turn."""
        return all(trail.is_late for trail in self._trails.values())

    def _of_loops(self, chain: List[Stand]) -> List[Stand]:
        """Without a loader that asks for its first batch at another place than for the next ones."""
        return chain[:-1] if chain and self._is_one_ahead(chain[-1].key) else chain

    def _note(self, steps: int) -> None:
        if self._last is not None and steps > self._last.steps and not self._last.trained:
            self._last.trained = True
            self._trained[tuple(self._last.chain)] = self._last


def check_nothing_trains_before(
    trails: Trails, found: List[FrameType], chain: List[Stand], steps: int, by_the_script: bool
) -> None:
    """Raises CannotTake where a script that is started again would train on its way to this place."""
    before = "the script" if by_the_script else trails.trained_before(found, chain, steps)
    if not before:
        return
    if any(type(one) is CYCLE for frame in found for one in frame.f_locals.values()):
        raise CannotTake(f"how far the itertools.cycle() in {chain[-1].key[1]} is cannot be told")
    words = before if by_the_script else f"the loop at {before}"
    raise CannotTake(
        f"{words} trains before the loop at {chain[-1].words}, and would train again when it is started again"
    )


def _parting(one: List[Stand], other: List[Stand]) -> Optional[int]:
    return next((level for level, pair in enumerate(zip(one, other)) if pair[0] != pair[1]), None)


def _same_turn(one: Turn, other: Turn, level: int) -> bool:
    """Of the loops around both. In the frames further in, a loop on the same line is that of another call."""
    return all(other.get(loop, value) == value for loop, value in one.items() if loop[0] <= level)


def _precedes(first: Stand, second: Stand) -> bool:
    return first.key == second.key and first.instruction < second.instruction


def turn_of(found: List[FrameType]) -> Turn:
    turn = {}
    for level, frame in enumerate(found):
        key = (frame.f_code, frames.instruction_of(frame))
        if key not in _loops:
            _loops[key] = _around(frame)
        if _loops[key]:
            for line, bound in _loops[key]:
                values = [_plain(loop_heads.value_of(frame, one)) for one in bound]
                turn[level, line] = values[0] if len(values) == 1 else tuple(values)
    return turn


def _around(frame: FrameType) -> List[Tuple[int, List[ast.expr]]]:
    """Each loop with what its items are bound to."""
    try:
        loops = source_position.standing(frame).around
    except CannotTake:
        return []
    found: List[Tuple[int, List[ast.expr]]] = []
    for loop in loops:
        parts = [one for one in ast.walk(loop.target) if isinstance(one, (ast.Name, ast.Attribute))]
        found.append((loop.lineno, [one for one in parts if isinstance(one.ctx, ast.Store)]))
    return found


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
