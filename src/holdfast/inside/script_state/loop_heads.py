"""The `for` loops around a place: how far each is, and beginning them there again.

A `for` over a `range` is begun further on by handing the script the rest of it at the place where it asks for one; a list,
tuple or dict through the state of its iterator, which the garbage collector knows; what a library's function gives through
the `enumerate` around it. Other iterables are refused.
"""

from __future__ import annotations

import ast
import gc
import inspect
import itertools
import types
import weakref
from types import FrameType
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ..library_paths import is_library
from . import source_position, walks
from .refusal import CannotPutBack, CannotTake
from .source_position import Function, Standing

SAME_ITEMS = ("tqdm", "tqdm_notebook", "track")  # progress bars: give what they are given
STATEFUL = (  # of Python's own, and of itertools: they count for themselves
    "map", "filter", "reversed", "range", "islice", "cycle", "chain", "count", "takewhile", "dropwhile", "zip_longest",
    "repeat", "accumulate", "starmap", "batched", "pairwise", "tee", "sorted", "list", "tuple",
)  # fmt: skip
RANGES = ("range", "trange", "tnrange")
COUNTED = ("range", "sequence", "counted")  # kinds of loops that are begun in the turn that was under way


class Head(NamedTuple):
    """Of one loop around a place."""

    # range, sequence (also several in a zip, or dicts), counted (by an enumerate() around it), generator; followed: its
    # iterator is known to a framework's part
    kind: str
    line: int
    column: int
    value: int  # of a range: the item at hand; of a sequence: the number of the next; what enumerate() counts around others
    expression: str = ""
    loop: int = 0  # the line of the `for`; line and column are those of a range or enumerate(), which may be asked for elsewhere
    target: str = ""  # what a sequence's items are bound to; empty where an enumerate() numbers them
    body: Tuple[int, int] = (0, 0)  # lines


def taken(frame: FrameType, standing: Standing, is_followed: Callable[[Any], bool]) -> List[Head]:
    return [_head(frame, loop, standing.body, is_followed) for loop in standing.around]


def _head(frame: FrameType, loop: ast.For, body: Function, is_followed: Callable[[Any], bool]) -> Head:
    iterable = _assigned(frame, _unwrapped(loop.iter), body)
    numbers, variable = _range_of(frame, loop, iterable)
    if numbers is not None:
        if not isinstance(variable, (ast.Name, ast.Attribute)):
            raise CannotTake(f"the loop on line {loop.lineno} has no single variable")
        at = _number(frame, loop, variable, body)
        return Head("range", numbers.lineno, numbers.col_offset, at, loop=loop.lineno)
    found = value_of(frame, iterable)
    body_lines = (min(one.lineno for one in _decorated(loop.body[0])), loop.body[-1].end_lineno or 0)
    if is_followed(found):
        return Head("followed", loop.lineno, loop.col_offset, 0, body=body_lines)
    if walked(frame, loop) is not None:
        return Head("generator", loop.lineno, loop.col_offset, _counted(frame, loop, body), body=body_lines)
    counting, target = None, _names_bound(loop)
    if isinstance(iterable, ast.Call) and _called(iterable) == "enumerate" and iterable.args:
        counting, iterable, target = iterable, _unwrapped(iterable.args[0]), ""
    line, column = (loop.lineno, loop.col_offset) if counting is None else (counting.lineno, counting.col_offset)
    over = walks.containers(iterable, lambda node: value_of(frame, node))
    if over is not None:
        so_far = {_walk(frame, one, loop.lineno).taken for one in over}
        if counting is None and body_lines[0] == loop.lineno and so_far != {1}:
            raise CannotTake(
                f"the body of the loop over `{ast.unparse(iterable)[:60]}` stands in its line ({loop.lineno})"
            )
        if len(so_far) == 1 and (target or counting is not None):
            return Head("sequence", line, column, so_far.pop(), ast.unparse(iterable), loop.lineno, target, body_lines)
    words = f"the loop over `{ast.unparse(loop.iter)[:60]}` on line {loop.lineno} cannot be begun further on"
    if _is_given_by_a_library(frame, iterable, is_followed):
        if counting is None:
            raise CannotTake(f"{words}; with an enumerate() around it, it could")
        return Head("counted", line, column, _counted(frame, loop, body), loop=loop.lineno)
    anonymous = any(isinstance(node, (ast.List, ast.Dict, ast.Tuple)) for node in ast.walk(iterable))
    raise CannotTake(words + "; what a variable holds could" * anonymous)


def _names_bound(loop: ast.For) -> str:
    inner = [node for node in ast.walk(loop.target) if not isinstance(node, ast.expr_context)]
    return ast.unparse(loop.target) if all(isinstance(one, (ast.Name, ast.Tuple, ast.List)) for one in inner) else ""


def _decorated(statement: ast.stmt) -> List[Any]:
    return [statement, *getattr(statement, "decorator_list", ())]


def _walk(frame: FrameType, node: ast.expr, line: int) -> walks.Walk:
    return walks.walk(node, lambda one: value_of(frame, one), line)


def _is_given_by_a_library(frame: FrameType, node: ast.expr, is_followed: Callable[[Any], bool]) -> bool:
    """`folds.split(rows)`: what a generator of a library's gives, which can be asked for again."""
    function = value_of(frame, node.func) if isinstance(node, ast.Call) else None
    code = getattr(inspect.unwrap(function), "__code__", None) if function is not None else None
    return code is not None and is_library(code.co_filename) and not is_followed(function)


def _assigned(frame: FrameType, iterable: ast.expr, body: Function) -> ast.expr:
    """What a progress bar that a variable holds was made of: `with trange(n) as bar`, `bar = tqdm(items)`."""
    if not (isinstance(iterable, ast.Name) and _is_bar(value_of(frame, iterable))):
        return iterable
    found = []
    for node in ast.walk(body):
        if isinstance(node, ast.withitem):
            found += [node.context_expr] if _names(node.optional_vars, iterable.id) else []
        elif isinstance(node, ast.Assign):
            found += [node.value] if any(_names(one, iterable.id) for one in node.targets) else []
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)) and node.value is not None:
            found += [node.value] if _names(node.target, iterable.id) else []
    return _unwrapped(found[0]) if len(found) == 1 else iterable


def _names(target: Optional[ast.expr], name: str) -> bool:
    return isinstance(target, ast.Name) and target.id == name


def _is_bar(value: Any) -> bool:
    return hasattr(value, "iterable") and type(value).__module__.startswith("tqdm")


def _range_of(frame: FrameType, loop: ast.For, iterable: ast.expr) -> Tuple[Optional[ast.Call], Optional[ast.expr]]:
    """The range that a loop goes over, also within an enumerate(), and the variable that holds its numbers."""
    variable: Optional[ast.expr] = loop.target
    if isinstance(iterable, ast.Call) and _called(iterable) == "enumerate" and iterable.args:
        iterable = _unwrapped(iterable.args[0])
        pair = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
        variable = pair[1] if len(pair) == 2 else None
    if isinstance(iterable, ast.Call) and (
        _called(iterable) in RANGES or value_of(frame, iterable.func) is itertools.count
    ):
        return iterable, variable
    return None, None


def walked(frame: FrameType, loop: ast.For) -> Any:
    """The script's own generator that a loop goes over; None where it goes over something else."""
    iterable = _unwrapped(loop.iter)
    if isinstance(iterable, ast.Call) and _called(iterable) == "enumerate" and iterable.args:
        iterable = _unwrapped(iterable.args[0])
    found = value_of(frame, iterable.func if isinstance(iterable, ast.Call) else iterable)
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
            if name != "zip" or all(is_followed(value_of(frame, one)) for one in inner):
                return
            raise CannotTake(f"`{ast.unparse(node)[:60]}` on line {node.lineno} goes over more than loaders")
        if (name in STATEFUL and not _is_method_of(frame, node, is_followed)) or _root(node.func) == "itertools":
            raise CannotTake(f"how far `{ast.unparse(node)[:60]}` on line {node.lineno} is cannot be told")
        return  # a function of the script's that gives a loader
    _check_value(value_of(frame, node), node, is_followed)


def _check_value(value: Any, node: ast.expr, is_followed: Callable[[Any], bool]) -> None:
    """Of a variable: a loader, an iterator that is followed, a bar or a count around one, or code of the user's own."""
    if is_followed(value) or isinstance(value, (enumerate, types.GeneratorType)) or value is None:
        return
    if _is_bar(value):
        _check_value(value.iterable, node, is_followed)
    elif type(value).__module__ in ("builtins", "itertools"):
        raise CannotTake(f"how far `{ast.unparse(node)[:60]}` on line {node.lineno} is cannot be told")


def _is_method_of(frame: FrameType, node: ast.expr, is_followed: Callable[[Any], bool]) -> bool:
    """`data.shuffle(10).map(…)`: a new one each time, which is followed itself."""
    while isinstance(node, (ast.Call, ast.Attribute)):
        node = node.func if isinstance(node, ast.Call) else node.value
        if isinstance(node, (ast.Name, ast.Attribute)) and is_followed(value_of(frame, node)):
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


def _number(frame: FrameType, loop: ast.For, variable: ast.expr, body: Function) -> int:
    """By the loop's variable, where nothing else writes it."""
    written = f"`{ast.unparse(variable)}`, the variable of the loop on line {loop.lineno}, is"
    if isinstance(variable, ast.Attribute):
        if source_position.writes_attribute(frame.f_code, variable.attr, loop):
            raise CannotTake(f"{written} written elsewhere, too")
        name = ""
    else:
        name = variable.id if isinstance(variable, ast.Name) else ""
    for node in ast.walk(ast.Module(loop.body, [])) if name else ():
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            raise CannotTake(f"{written} written in it, too")
        if isinstance(node, (ast.Import, ast.ImportFrom)) and any((a.asname or a.name) == name for a in node.names):
            raise CannotTake(f"{written} imported over in it")
    if any(isinstance(node, (ast.Global, ast.Nonlocal)) and name in node.names for node in ast.walk(body)):
        raise CannotTake(f"{written} written elsewhere, too")
    value = value_of(frame, variable)
    if type(value) is not int:
        raise CannotTake(f"{written} no number")
    return value


def value_of(frame: FrameType, node: ast.expr) -> Any:
    """What a plain name stands for, or a constant of the code; None where more would have to be run to know."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        owner = value_of(frame, node.value)
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


def put_on(frame: FrameType, head: Head) -> List[Any]:
    """The iterators of a loop over lists, tuples or dicts go on where they were. Returns those that the source names."""
    return [one.container for one, _ in _put(frame, head)]


def begin_with(frame: FrameType, head: Head) -> Dict[str, Any]:
    """In its first turn already. Returns the variables of that turn."""
    items = [item for _, item in _put(frame, head)]
    is_zip = head.expression.startswith("zip(")
    return _bound(ast.parse(head.target, mode="eval").body, tuple(items) if is_zip else items[0])


def _put(frame: FrameType, head: Head) -> List[Tuple[walks.Walk, Any]]:
    nodes = walks.containers(ast.parse(head.expression, mode="eval").body, lambda node: value_of(frame, node))
    try:
        found = [_walk(frame, node, head.line) for node in nodes or ()]
    except CannotTake as error:
        raise CannotPutBack(str(error)) from None
    if not found or any(len(one.container) < head.value for one in found):
        raise CannotPutBack(f"the loop on line {head.line} goes over something else")
    return [(one, one.put(head.value)) for one in found]


def _bound(target: ast.expr, item: Any) -> Dict[str, Any]:
    if isinstance(target, ast.Name):
        return {target.id: item}
    if not isinstance(target, (ast.Tuple, ast.List)):
        raise CannotPutBack(f"what `{ast.unparse(target)}` is bound to in a loop's first turn")
    items = list(item)
    return {name: value for part, one in zip(target.elts, items) for name, value in _bound(part, one).items()}


def index_in(whole: range, value: int) -> int:
    if value not in whole:
        raise CannotPutBack(f"{value} is not in {whole}: the loop was begun with other numbers")
    return whole.index(value)


def place(heads: List[List[Head]]) -> Tuple[Any, ...]:
    """What tells one turn of the loops around a place from another."""
    return tuple((one.line, one.value) for level in heads for one in level if one.kind != "followed")


def enclosing(
    heads: List[List[Head]], level: int, line: int, column: Optional[int], kinds: Tuple[str, ...] = ("range",)
) -> Optional[Head]:
    """The range, or what else is asked for by a call on this line of this frame."""
    for head in heads[level]:
        if head.kind in kinds and head.line == line and column in (None, head.column):
            return head
    return None
