"""`range` and `enumerate` in a script that is gone on with: at the recorded places they begin where the loops were. Loops over
lists, tuples and dicts are found in their first turn (`FirstTurns`).

Only in a process that resumes, only in the script's own modules, and only until it has resumed.
"""

from __future__ import annotations

import functools
import itertools
import sys
from importlib.util import find_spec
from types import FrameType, ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set, Tuple

from . import frame_variables, frames
from .first_turns import FirstTurns
from .frames import Stand
from .loop_heads import RANGES, Head, enclosing, index_in
from .refusal import CannotPutBack

COUNT = itertools.count
NUMBERED = ("sequence", "counted")
RANGE_MODULES = ("tqdm.std", "tqdm.auto", "tqdm.notebook")  # `trange` asks there


class BegunFurtherOn:
    def __init__(
        self,
        chain: List[Stand],
        heads: List[List[Head]],
        modules: List[str],
        or_stop: Callable[..., Any],
        generators: Optional[Dict[frames.CodeKey, List[Head]]] = None,
        turn_begins: Callable[[int, int], object] = lambda _level, _line: None,
        read: Sequence[Dict[str, Any]] = (),
    ) -> None:
        self._chain = chain
        self._heads = heads
        self._generators = generators or {}
        self._turn_begins = turn_begins  # of the loop of this frame and line
        self._read = read  # by frame: what a statement under way has read before its call
        self._counting: List[_Counting] = []
        self._or_stop = or_stop
        self._names: Dict[str, Any] = {"range": _range_of(self), "enumerate": self._enumerate}
        self._count = _count_of(self)
        self._modules: Set[str] = {*modules, *RANGE_MODULES}
        self._given: List[Dict[str, Any]] = []
        # Of loops that were begun: frame or generator, line, column.
        self._numbers: Dict[Tuple[Any, int, int], Tuple[Numbers, Head]] = {}
        self._looking: Set[str] = set()
        self._numbered: Set[Head] = set()  # enumerate() was begun there
        self.users = frames.users
        self._first_turns = FirstTurns(chain, heads, self._level_of, self._loop_begins, or_stop, read)
        self.resumed_items: Optional[int] = None  # so many items had the innermost loop taken

    # -- in the script's modules

    def install(self) -> None:
        for name in self._modules:
            module = sys.modules.get(name)
            if module is not None:
                self._give(module)
        sys.meta_path.insert(0, self)
        vars(itertools)["count"] = self._count
        self._first_turns.install(self.users(sys._getframe(1)))

    def remove(self) -> None:
        self._first_turns.remove()
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        vars(itertools)["count"] = COUNT
        for names in self._given:
            _rename(names, self._count, COUNT)
            for name, ours in self._names.items():
                if names.get(name) is ours:
                    del names[name]
        self._given = []

    def _give(self, module: ModuleType) -> None:
        names = vars(module)
        wanted = ("range",) if module.__name__ in RANGE_MODULES else tuple(self._names)
        for name in wanted:
            names.setdefault(name, self._names[name])
        _rename(names, COUNT, self._count)
        self._given.append(names)

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """The import of one of those modules is seen coming, as the bootstrap sees a framework's."""
        if name not in self._modules or name in self._looking:
            return None
        self._looking.add(name)
        try:
            spec = find_spec(name)
        finally:
            self._looking.discard(name)
        loader = getattr(spec, "loader", None)
        if loader is None or not hasattr(loader, "exec_module"):
            return None
        run = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            self._give(module)
            run(module)

        loader.exec_module = exec_module
        return spec

    # -- what they give

    def range(self, whole: range, caller: FrameType) -> Any:
        frame = frames.innermost_user(caller)
        if frame is None or self.resumed_items is not None:
            return whole
        if frame is not caller and caller.f_code.co_name not in RANGES:  # a bar counts its like with a range, too
            return whole
        key = frames.key_of(frame.f_code)
        if key in self._generators:
            return self._further_on(whole, key, [self._generators[key]], 0, frame)
        level = self._level_of(frame)
        if level is None:
            return whole
        self._turn_begins(level, frame.f_lineno)
        return self._further_on(whole, level, self._heads, level, frame)

    def _level_of(self, frame: FrameType) -> Optional[int]:
        """Of a frame that stands where one of the recorded ones stood."""
        outer = self.users(frame)
        level = len(outer) - 1
        if level >= len(self._chain) or frames.key_of(frame.f_code) != self._chain[level].key:
            return None
        return level if frames.stands(outer[:-1]) == self._chain[:level] else None

    def _loop_begins(self, level: int, head: Head, frame: FrameType) -> None:
        """Its first turn, of those that this process runs: in the one around the recorded place."""
        if head.loop != head.line or head.kind != "range":
            self._turn_begins(level, head.loop)
        if level < len(self._read) and self._read[level] and self._heads[level][-1] is head:
            frame_variables.write(frame, self._read[level])

    def _further_on(self, whole: Any, owner: Any, heads: List[List[Head]], level: int, frame: FrameType) -> Any:
        """From its beginning where it is asked for a second time: the loop around it is in its next turn already."""
        head = enclosing(heads, level, frame.f_lineno, _column(frame))
        if head is None:
            return whole
        key = (owner, head.line, head.column)
        begin = 0 if key in self._numbers else self._or_stop(index_in, whole, head.value)
        at_first = functools.partial(self._loop_begins, level, head) if owner == level else None
        self._numbers[key] = (Numbers(whole, begin, at_first), head)
        return self._numbers[key][0]

    def put_turns(self) -> None:
        """Each loop is in the turn that was saved. A script that fills a buffer before it trains has needed turns to come here."""
        self._or_stop(self._first_turns.check)
        for numbers, head in self._numbers.values():
            numbers.next = self._or_stop(index_in, numbers.whole, head.value) + 1
            for one in self._counting:
                if one.inner is numbers:
                    one.count = one.start + numbers.next

    def put_sequence(self, sequence: Any, number: int) -> None:
        """The loop over this list or tuple takes the item of this number next: an enumerate() around it counts from there."""
        for one in self._counting:
            if one.inner is sequence:
                one.count = one.start + number

    def count_on(self, items: Any, count: int) -> None:
        """An enumerate() around a generator has counted so far."""
        for one in self._counting:
            if one.items is items:
                one.count = count + 1

    def items_counted(self) -> int:
        """By an `enumerate` around the loop that was put back, from the beginning of its data on."""
        assert self.resumed_items is not None
        if self.resumed_items < 0:
            self._or_stop(_not_from_the_beginning)
        return self.resumed_items

    def _enumerate(self, iterable: Any, start: int = 0) -> Any:
        if self.resumed_items is not None:
            return enumerate(iterable, start)
        inner = getattr(iterable, "iterable", iterable)  # of a progress bar
        caller = sys._getframe(1)
        level = self._level_of(caller)
        head = enclosing(self._heads, level, caller.f_lineno, _column(caller), NUMBERED) if level is not None else None
        begins = head is not None and level is not None and head not in self._numbered and (head.target == "")
        self._counting.append(_Counting(self, iter(iterable), start, inner))
        if begins and head is not None and level is not None:
            self._numbered.add(head)
            passed = head.value - (start if head.kind == "counted" else 1)
            self._counting[-1].begin_with(passed, functools.partial(self._loop_begins, level, head))
        return self._counting[-1]


class _Counting:
    """`enumerate`, which counts on from where it was once the script has been put back while it asked for an item."""

    def __init__(self, plan: BegunFurtherOn, items: Iterator[Any], start: int, inner: Any) -> None:
        self._plan = plan
        self.items, self.inner = items, inner
        self.start = start
        self.count = start + (inner.next if isinstance(inner, Numbers) else 0)
        self._at_first: Optional[Callable[[FrameType], object]] = None

    def begin_with(self, passed: int, at_first: Callable[[FrameType], object]) -> None:
        """So many items belong to turns that are over."""
        for _ in range(passed):
            next(self.items)
        self.count += passed
        self._at_first = at_first

    def __iter__(self) -> _Counting:
        return self

    def __next__(self) -> Tuple[int, Any]:
        resumed = self._plan.resumed_items
        if self._at_first is not None:
            at_first, self._at_first = self._at_first, None
            _call_with_user(at_first, sys._getframe(1))
        item = next(self.items)
        if resumed is None and self._plan.resumed_items is not None:
            self.count += self._plan.items_counted()
        count, self.count = self.count, self.count + 1
        return count, item


def _call_with_user(at_first: Callable[[FrameType], object], frame: FrameType) -> None:
    """The script's own frame: a bar may stand between."""
    user = frames.innermost_user(frame)
    if user is not None:
        at_first(user)


class Numbers:
    """A range that is begun further on, and whose loop can be put into another turn."""

    def __init__(self, whole: range, begin: int, at_first: Optional[Callable[[FrameType], object]] = None) -> None:
        self.whole, self.next = whole, begin
        self._length = len(whole) - begin
        self._at_first = at_first

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Numbers:
        return self

    def __next__(self) -> int:
        if self._at_first is not None:
            at_first, self._at_first = self._at_first, None
            _call_with_user(at_first, sys._getframe(1))
        if self.next >= len(self.whole):
            raise StopIteration
        self.next += 1
        return self.whole[self.next - 1]


def _rename(names: Dict[str, Any], before: Any, after: Any) -> None:
    for name in [one for one, value in names.items() if value is before]:
        names[name] = after


class _CountType(type):
    """A class that makes real counts, but at the recorded places a range that does not end."""

    plan: BegunFurtherOn

    def __call__(cls, start: Any = 0, step: Any = 1) -> Any:
        if type(start) is int and type(step) is int and step > 0:
            whole = range(start, sys.maxsize, step)
            given = cls.plan.range(whole, sys._getframe(1))
            if given is not whole:
                return given
        return COUNT(start, step)

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, COUNT)


def _count_of(plan: BegunFurtherOn) -> Any:
    return _CountType("count", (), {"plan": plan, "__doc__": COUNT.__doc__})


class _RangeType(type):
    """A class that makes real ranges, so that `isinstance(x, range)` stays right."""

    plan: BegunFurtherOn

    def __call__(cls, *arguments: Any) -> Any:
        return cls.plan.range(range(*arguments), sys._getframe(1))

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, (range, Numbers))


def _range_of(plan: BegunFurtherOn) -> Any:
    return _RangeType("range", (), {"plan": plan, "__doc__": range.__doc__})


def _not_from_the_beginning() -> None:
    raise CannotPutBack("its batches are counted by an enumerate() that was begun after the first of them")


def _column(frame: FrameType) -> Optional[int]:
    positions, number = getattr(frame.f_code, "co_positions", None), frames.instruction_of(frame) // 2
    if positions is None:
        return None
    for index, (_, _, column, _) in enumerate(positions()):
        if index == number:
            return column  # type: ignore[no-any-return]
    return None
