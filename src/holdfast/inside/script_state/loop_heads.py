"""The `for` loops around a place: how far each is, and beginning them there again.

A `for` over a `range` is begun further on by handing the script the rest of it at the place where it asks for one; a list
or tuple through the state of its iterator, which the garbage collector knows. Other iterables are refused.
"""

from __future__ import annotations

import ast
import gc
import inspect
import types
import weakref
from types import FrameType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ..library_paths import is_library
from .refusal import CannotPutBack, CannotTake
from .source_position import Function, Standing

SAME_ITEMS = ("tqdm", "tqdm_notebook", "track")  # progress bars: give what they are given
STATEFUL = (  # of Python's own, and of itertools: they count for themselves
    "map", "filter", "reversed", "range", "islice", "cycle", "chain", "count", "takewhile", "dropwhile", "zip_longest",
    "repeat", "accumulate", "starmap", "batched", "pairwise", "tee", "sorted", "list", "tuple",
)  # fmt: skip
RANGES = ("range", "trange", "tnrange")
_ITERATORS: Tuple[type, ...] = (type(iter([])), type(iter(())))


class Head(NamedTuple):
    """Of one loop around a place."""

    kind: str  # range, sequence, generator; followed: its iterator is known to a framework's part
    line: int
    column: int
    value: int  # of a range: the item at hand; of a sequence: the number of the next; what enumerate() counts around others
    expression: str = ""


def taken(frame: FrameType, standing: Standing, is_followed: Callable[[Any], bool]) -> List[Head]:
    return [_head(frame, loop, standing.body, is_followed) for loop in standing.around]


def _head(frame: FrameType, loop: ast.For, body: Function, is_followed: Callable[[Any], bool]) -> Head:
    iterable = _unwrapped(loop.iter)
    numbers, variable = _range_of(loop, iterable)
    if numbers is not None:
        if not isinstance(variable, ast.Name):
            raise CannotTake(f"the loop on line {loop.lineno} has no single variable")
        return Head("range", numbers.lineno, numbers.col_offset, _number(frame, loop, variable, body))
    found = _value(frame, iterable)
    if is_followed(found):
        return Head("followed", loop.lineno, loop.col_offset, 0)
    if walked(frame, loop) is not None:
        return Head("generator", loop.lineno, loop.col_offset, _counted(frame, loop, body))
    if isinstance(found, (list, tuple)):
        iterator = _iterator_over(found, loop.lineno)
        return Head("sequence", loop.lineno, loop.col_offset, int(iterator.__reduce__()[2]), ast.unparse(iterable))
    raise CannotTake(f"the loop over `{ast.unparse(loop.iter)[:60]}` on line {loop.lineno} cannot be begun further on")


def _range_of(loop: ast.For, iterable: ast.expr) -> Tuple[Optional[ast.Call], Optional[ast.expr]]:
    """The range that a loop goes over, also within an enumerate(), and the variable that holds its numbers."""
    variable: Optional[ast.expr] = loop.target
    if isinstance(iterable, ast.Call) and _called(iterable) == "enumerate" and iterable.args:
        iterable = _unwrapped(iterable.args[0])
        pair = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
        variable = pair[1] if len(pair) == 2 else None
    if isinstance(iterable, ast.Call) and _called(iterable) in RANGES:
        return iterable, variable
    return None, None


def walked(frame: FrameType, loop: ast.For) -> Any:
    """The script's own generator that a loop goes over; None where it goes over something else."""
    iterable = _unwrapped(loop.iter)
    if isinstance(iterable, ast.Call) and _called(iterable) == "enumerate" and iterable.args:
        iterable = _unwrapped(iterable.args[0])
    found = _value(frame, iterable.func if isinstance(iterable, ast.Call) else iterable)
    if isinstance(found, types.GeneratorType) and not isinstance(iterable, ast.Call):
        return found
    code = getattr(found, "__code__", None) if isinstance(iterable, ast.Call) else None
    if code is None or not code.co_flags & inspect.CO_GENERATOR or is_library(code.co_filename):
        return None
    return generators_of(code, loop.lineno)


def generators_of(code: types.CodeType, line: int) -> Any:
    """The one generator of this code that somebody goes through. Looking for it takes some 40 ms in a large process."""
    known = _walked.get(code, _nothing)()
    if known is not None and inspect.getgeneratorstate(known) == inspect.GEN_SUSPENDED:
        return known
    found = [one for one in gc.get_objects() if type(one) is types.GeneratorType and one.gi_code is code]
    found = [one for one in found if inspect.getgeneratorstate(one) == inspect.GEN_SUSPENDED]
    if len(found) != 1:
        raise CannotTake(f"which generator the loop on line {line} goes over cannot be told: there are {len(found)}")
    _walked[code] = weakref.ref(found[0])
    return found[0]


_walked: Dict[types.CodeType, Callable[[], Any]] = {}  # found before


def _nothing() -> None:
    return None


def _counted(frame: FrameType, loop: ast.For, body: Function) -> int:
    """By an enumerate() around it; -1 where there is none."""
    iterable = _unwrapped(loop.iter)
    if not (isinstance(iterable, ast.Call) and _called(iterable) == "enumerate"):
        return -1
    if not (isinstance(loop.target, ast.Tuple) and isinstance(loop.target.elts[0], ast.Name)):
        raise CannotTake(f"how far enumerate() on line {loop.lineno} is cannot be told")
    return _number(frame, loop, loop.target.elts[0], body)


def check_source(frame: FrameType, standing: Standing, is_followed: Callable[[Any], bool]) -> None:
    """What is asked for items where the frame stands must be followed, or count nothing that could not be counted on."""
    if standing.head is not None:
        _check_gives_the_same(frame, standing.head.iter, is_followed)
        return
    active = standing.active
    if isinstance(active, ast.YieldFrom):
        _check_gives_the_same(frame, active.value, is_followed)
    elif isinstance(active, ast.Call) and _called(active) in ("next", "__next__"):
        for argument in active.args[:1]:
            _check_gives_the_same(frame, argument, is_followed)
    else:
        raise CannotTake(f"the data is gone through inside a call on line {frame.f_lineno}")


def _check_gives_the_same(frame: FrameType, node: ast.expr, is_followed: Callable[[Any], bool]) -> None:
    if isinstance(node, ast.Call):
        name = _called(node)
        if name in (*SAME_ITEMS, "enumerate", "iter", "zip"):
            inner = node.args if name == "zip" else node.args[:1]
            for one in inner:
                _check_gives_the_same(frame, one, is_followed)
            if name != "zip" or all(is_followed(_value(frame, one)) for one in inner):
                return
            raise CannotTake(f"`{ast.unparse(node)[:60]}` on line {node.lineno} goes over more than loaders")
        if (name in STATEFUL and not _is_method_of(frame, node, is_followed)) or _root(node.func) == "itertools":
            raise CannotTake(f"how far `{ast.unparse(node)[:60]}` on line {node.lineno} is cannot be told")
        return  # a function of the script's that gives a loader
    _check_value(_value(frame, node), node, is_followed)


def _check_value(value: Any, node: ast.expr, is_followed: Callable[[Any], bool]) -> None:
    """Of a variable: a loader, an iterator that is followed, a bar or a count around one, or code of the user's own."""
    if is_followed(value) or isinstance(value, (enumerate, types.GeneratorType)) or value is None:
        return
    if hasattr(value, "iterable") and type(value).__module__.startswith("tqdm"):
        _check_value(value.iterable, node, is_followed)
    elif type(value).__module__ in ("builtins", "itertools"):
        raise CannotTake(f"how far `{ast.unparse(node)[:60]}` on line {node.lineno} is cannot be told")


def _is_method_of(frame: FrameType, node: ast.expr, is_followed: Callable[[Any], bool]) -> bool:
    """`data.shuffle(10).map(…)`: a new one each time, which is followed itself."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, (ast.Name, ast.Attribute)) and is_followed(_value(frame, node)):
            return True
    return _root(node) in ("tf", "tensorflow")


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return getattr(node, "id", "")


def _unwrapped(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and _called(node) in SAME_ITEMS and node.args:
        node = node.args[0]
    return node


def _called(call: ast.Call) -> str:
    return getattr(call.func, "id", "") or getattr(call.func, "attr", "")


def _number(frame: FrameType, loop: ast.For, variable: ast.Name, body: Function) -> int:
    """By the loop's variable, where nothing else writes it."""
    name = variable.id
    for node in ast.walk(ast.Module(loop.body, [])):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            raise CannotTake(f"`{name}`, the variable of the loop on line {loop.lineno}, is written in it, too")
        if isinstance(node, (ast.Import, ast.ImportFrom)) and any((a.asname or a.name) == name for a in node.names):
            raise CannotTake(f"`{name}`, the variable of the loop on line {loop.lineno}, is imported over in it")
    if any(isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names for node in ast.walk(body)):
        raise CannotTake(f"`{name}`, the variable of the loop on line {loop.lineno}, is written elsewhere, too")
    value = frame.f_locals.get(name)
    if type(value) is not int:
        raise CannotTake(f"`{name}`, the variable of the loop on line {loop.lineno}, is no number")
    return value


def _value(frame: FrameType, node: ast.expr) -> Any:
    """What a plain name stands for, or a constant of the code; None where more would have to be run to know."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        owner = _value(frame, node.value)
        return inspect.getattr_static(owner, node.attr, None) if _has_dict(owner) else None
    if isinstance(node, (ast.Tuple, ast.List)):
        try:
            wanted = tuple(ast.literal_eval(node))
        except (ValueError, TypeError):
            return None
        return next((one for one in frame.f_code.co_consts if isinstance(one, tuple) and one == wanted), None)
    return None


def _has_dict(value: Any) -> bool:
    return hasattr(value, "__dict__")


def _iterator_over(sequence: Any, line: int) -> Any:
    found = [one for one in gc.get_referrers(sequence) if type(one) in _ITERATORS and one.__reduce__()[1] != ((),)]
    found = [one for one in found if len(one.__reduce__()) == 3 and one.__reduce__()[1][0] is sequence]
    if len(found) != 1:
        raise CannotTake(f"how far the loop on line {line} is cannot be told: {len(found)} iterators go over the same")
    return found[0]


def put_on(frame: FrameType, head: Head) -> None:
    """The iterator of a loop over a list or tuple goes on where it was."""
    sequence = _value(frame, ast.parse(head.expression, mode="eval").body)
    if not isinstance(sequence, (list, tuple)) or len(sequence) < head.value:
        raise CannotPutBack(f"the loop on line {head.line} goes over something else")
    try:
        iterator = _iterator_over(sequence, head.line)
    except CannotTake as error:
        raise CannotPutBack(str(error)) from None
    iterator.__setstate__(head.value)


def index_in(whole: range, value: int) -> int:
    if value not in whole:
        raise CannotPutBack(f"{value} is not in {whole}: the loop was begun with other numbers")
    return whole.index(value)


def place(heads: List[List[Head]]) -> Tuple[Any, ...]:
    """What tells one turn of the loops around a place from another."""
    return tuple((one.line, one.value) for level in heads for one in level if one.kind != "followed")


def enclosing(heads: List[List[Head]], level: int, line: int, column: Optional[int]) -> Optional[Head]:
    """The range that is asked for on this line of this frame."""
    for head in heads[level]:
        if head.kind == "range" and head.line == line and column in (None, head.column):
            return head
    return None
