"""`range` and `enumerate` in a script that is gone on with: at the recorded places they begin where the loops were.

Only in a process that resumes, only in the script's own modules, and only until it has resumed.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from types import FrameType, ModuleType
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple

from . import frames
from .frames import Stand
from .loop_heads import Head, enclosing, index_in
from .refusal import CannotPutBack

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
    ) -> None:
        self._chain = chain
        self._heads = heads
        self._generators = generators or {}
        self._turn_begins = turn_begins  # of the loop of this frame and line
        self._counting: List[_Counting] = []
        self._or_stop = or_stop
        self._names: Dict[str, Any] = {"range": _range_of(self), "enumerate": self._enumerate}
        self._modules: Set[str] = {*modules, *RANGE_MODULES}
        self._given: List[Dict[str, Any]] = []
        # Of loops that were begun: frame or generator, line, column.
        self._numbers: Dict[Tuple[Any, int, int], Tuple[Numbers, Head]] = {}
        self._looking: Set[str] = set()
        self.users = frames.users
        self.resumed_items: Optional[int] = None  # so many items had the innermost loop taken

    # -- in the script's modules

    def install(self) -> None:
        for name in self._modules:
            module = sys.modules.get(name)
            if module is not None:
                self._give(module)
        sys.meta_path.insert(0, self)

    def remove(self) -> None:
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        for names in self._given:
            for name, ours in self._names.items():
                if names.get(name) is ours:
                    del names[name]
        self._given = []

    def _give(self, module: ModuleType) -> None:
        names = vars(module)
        wanted = ("range",) if module.__name__ in RANGE_MODULES else tuple(self._names)
        for name in wanted:
            names.setdefault(name, self._names[name])
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
        key = frames.key_of(frame.f_code)
        if key in self._generators:
            return self._further_on(whole, key, [self._generators[key]], 0, frame)
        outer = self.users(frame)
        level = len(outer) - 1
        if level >= len(self._chain) or key != self._chain[level].key:
            return whole
        if frames.stands(outer[:-1]) != self._chain[:level]:
            return whole
        self._turn_begins(level, frame.f_lineno)
        return self._further_on(whole, level, self._heads, level, frame)

    def _further_on(self, whole: Any, owner: Any, heads: List[List[Head]], level: int, frame: FrameType) -> Any:
        """From its beginning where it is asked for a second time: the loop around it is in its next turn already."""
        head = enclosing(heads, level, frame.f_lineno, _column(frame))
        if head is None:
            return whole
        key = (owner, head.line, head.column)
        begin = 0 if key in self._numbers else self._or_stop(index_in, whole, head.value)
        self._numbers[key] = (Numbers(whole, begin), head)
        return self._numbers[key][0]

    def put_turns(self) -> None:
        """Each loop is in the turn that was saved. A script that fills a buffer before it trains has needed turns to come here."""
        for numbers, head in self._numbers.values():
            numbers.next = self._or_stop(index_in, numbers.whole, head.value) + 1
            for one in self._counting:
                if one.numbers is numbers:
                    one.count = one.start + numbers.next

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
        self._counting.append(_Counting(self, iter(iterable), start, inner if isinstance(inner, Numbers) else None))
        return self._counting[-1]


class _Counting:
    """`enumerate`, which counts on from where it was once the script has been put back while it asked for an item."""

    def __init__(self, plan: BegunFurtherOn, items: Iterator[Any], start: int, numbers: Optional[Numbers]) -> None:
        self._plan = plan
        self.items, self.numbers = items, numbers
        self.start = start
        self.count = start + (numbers.next if numbers is not None else 0)

    def __iter__(self) -> _Counting:
        return self

    def __next__(self) -> Tuple[int, Any]:
        resumed = self._plan.resumed_items
        item = next(self.items)
        if resumed is None and self._plan.resumed_items is not None:
            self.count += self._plan.items_counted()
        count, self.count = self.count, self.count + 1
        return count, item


class Numbers:
    """A range that is begun further on, and whose loop can be put into another turn."""

    def __init__(self, whole: range, begin: int) -> None:
        self.whole, self.next = whole, begin
        self._length = len(whole) - begin

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Numbers:
        return self

    def __next__(self) -> int:
        if self.next >= len(self.whole):
            raise StopIteration
        self.next += 1
        return self.whole[self.next - 1]


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
