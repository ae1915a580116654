"""Where in its source a frame stands: the loops around it, and whether an expression is half evaluated there.

What a half-evaluated expression has read already (`best = max(best, validate())`) cannot be reached from outside, so such
a place is refused. The source is compared with the code that runs: a file that was edited meanwhile says nothing.
"""

from __future__ import annotations

import ast
import dis
import linecache
import sys
from types import CodeType, FrameType
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple, Union

from .frames import instruction_of, key_of
from .refusal import CannotTake

Function = Union[ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module]
Span = Tuple[int, int, int, int]  # line, column, end line, end column; columns -1 where Python does not tell
LINES_ONLY = -1
KEEPS_RANDOM_STATE = ("fork_rng",)  # contexts that end with what they found at their beginning
PLAIN_VALUES = (int, float, bool, complex, str, bytes, type(None))
COMPUTING = (ast.Name, ast.expr_context, ast.Constant, ast.BinOp, ast.operator, ast.UnaryOp, ast.unaryop,
             ast.JoinedStr, ast.FormattedValue)  # fmt: skip
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class Standing(NamedTuple):
    around: List[ast.For]  # whose bodies it is in, outermost first; `while` needs nothing
    head: Optional[ast.For]  # the loop whose next item is being asked for
    body: Function
    active: Optional[ast.expr] = None  # the call, or `yield from`, that is under way
    grown: Tuple[
        str, ...
    ] = ()  # variables of a `+=` under way: read already, so their lists must stay the same objects
    read: Tuple[str, ...] = ()  # and those whose plain values were read already: a turn must begin with them


class _Source(NamedTuple):
    tree: ast.Module
    codes: Dict[Any, CodeType]


_sources: Dict[str, Optional[_Source]] = {}


_standings: Dict[Tuple[CodeType, int], Union[Standing, str]] = {}


def standing(frame: FrameType) -> Standing:
    """Raises CannotTake where this place cannot be left and entered again."""
    key = (frame.f_code, instruction_of(frame))
    found = _standings.get(key)
    if found is None:
        try:
            found = _found(frame)
        except CannotTake as error:
            found = str(error)
        _standings[key] = found
    if isinstance(found, str):
        raise CannotTake(found)
    for name in {*found.grown, *found.read}:
        value = frame.f_locals.get(name)
        if not (name in found.read and _is_plain(value)) and not (name in found.grown and type(value) is list):
            raise CannotTake(_read_before(name, frame.f_lineno))
    return found


def _found(frame: FrameType) -> Standing:
    code, tree = frame.f_code, _tree(frame.f_code)
    body = _function(tree, code)
    if code.co_flags & (0x80 | 0x200):
        raise CannotTake(f"coroutines are not followed (line {frame.f_lineno})")
    span = _span(code, frame)
    at_head = _opname(code, instruction_of(frame)) == "FOR_ITER"
    path = _path_to(body, span, at_head)
    _check_contexts(path)
    _check_handlers(path)
    loops = [node for node in path if isinstance(node, ast.For)]
    if at_head and loops and _is_head(loops[-1], span):
        return Standing(loops[:-1], loops[-1], body)
    if span[1] == LINES_ONLY:
        _check_one_call(path[-1])
    read = _read_already(path, code, tree)
    inner = path if span[1] != LINES_ONLY else ast.walk(path[-1])
    active = [node for node in inner if isinstance(node, (ast.Call, ast.YieldFrom))]
    around = [loop for loop in loops if _in_body(loop, path)]
    return Standing(around, None, body, active[-1] if active else None, _grown(path), read)


def _grown(path: List[ast.AST]) -> Tuple[str, ...]:
    """A list is added to in place, and is put back in place."""
    targets = [node.target for node in path if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)]
    return tuple(target.id for target in targets if isinstance(target, ast.Name))


def _tree(code: CodeType) -> ast.Module:
    path = code.co_filename
    if path not in _sources:
        _sources[path] = _parsed(path)
    source = _sources[path]
    if source is None or key_of(code) not in source.codes:
        raise CannotTake(f"the source of {code.co_name} in {path} is not there, or not as it runs")
    return source.tree


def writes_attribute(code: CodeType, name: str, loop: ast.For) -> bool:
    """Whether this file writes such an attribute beside what is made in an `__init__` and the variable of this loop."""
    tree = _tree(code)
    made = [node for one in ast.walk(tree) if getattr(one, "name", "") == "__init__" for node in ast.walk(one)]
    passed = {id(node) for node in (*made, loop.target)}
    return any(
        isinstance(node, ast.Attribute)
        and node.attr == name
        and not isinstance(node.ctx, ast.Load)
        and id(node) not in passed
        for node in ast.walk(tree)
    )


def _parsed(path: str) -> Optional[_Source]:
    linecache.checkcache(path)
    text = "".join(linecache.getlines(path))
    try:
        tree = ast.parse(text)
        module = compile(text, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return None
    return _Source(tree, {key_of(code): code for code in _all(module)}) if text else None


def _all(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _all(constant)


def _function(tree: ast.Module, code: CodeType) -> Function:
    if code.co_name == "<module>":
        return tree
    if code.co_name == "<lambda>":
        lambdas = [
            node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno
        ]
        if len(lambdas) != 1:
            raise CannotTake(f"which lambda of line {code.co_firstlineno} runs cannot be told")
        return lambdas[0]
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name == code.co_name:
            first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    raise CannotTake(f"{code.co_name} is not a plain function (line {code.co_firstlineno})")


def _span(code: CodeType, frame: FrameType) -> Span:
    positions, number = getattr(code, "co_positions", None), instruction_of(frame) // 2
    if positions is not None:
        for index, (line, end_line, column, end_column) in enumerate(positions()):
            if index == number and None not in (line, end_line, column, end_column):
                return line, column, end_line, end_column
    return frame.f_lineno, LINES_ONLY, frame.f_lineno, LINES_ONLY


def _opname(code: CodeType, offset: int) -> str:
    return str(dis.opname[code.co_code[offset]])


def _path_to(body: ast.AST, span: Span, at_head: bool) -> List[ast.AST]:
    """From a function's body down to the innermost node around this span."""
    path = [body]
    while True:
        inside = [child for child in ast.iter_child_nodes(path[-1]) if _contains(child, span)]
        if not inside or (span[1] == LINES_ONLY and isinstance(inside[0], ast.expr)):
            return path
        path.append(inside[0])
        if at_head and isinstance(path[-1], ast.For) and _is_head(path[-1], span):
            return path


def _contains(node: ast.AST, span: Span) -> bool:
    line, column, end_line, end_column = span
    begin, end = getattr(node, "lineno", None), getattr(node, "end_lineno", None)
    if begin is None or end is None:
        return any(_contains(child, span) for child in ast.iter_child_nodes(node))  # a `with` item, arguments
    if column == LINES_ONLY:
        return bool(begin <= line <= end)
    begins = (begin, node.col_offset)  # type: ignore[attr-defined]
    ends = (end, node.end_col_offset)  # type: ignore[attr-defined]
    return bool(begins <= (line, column) and (end_line, end_column) <= ends)


def _is_head(loop: ast.For, span: Span) -> bool:
    """The instruction that asks for the next item is said to stand at the whole loop, or at what it goes over."""
    line, column, end_line, end_column = span
    if column == LINES_ONLY:
        return loop.lineno == line
    for node in (loop, loop.iter):
        if (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == (line, column, end_line, end_column):
            return True
    return False


def _in_body(loop: ast.For, path: List[ast.AST]) -> bool:
    below = path[path.index(loop) + 1]
    if below in loop.orelse:
        return False
    if below not in loop.body:
        raise CannotTake(f"what a loop goes over is still being computed (line {loop.lineno})")
    return True


def _read_already(path: List[ast.AST], code: CodeType, tree: ast.Module) -> Tuple[str, ...]:
    """Variables that what is half evaluated has read. Raises CannotTake where that can be no plain values which are read
    again alike: in a turn of a loop, before the statement, nothing may write them."""
    found: List[str] = []
    for outer, inner in zip(path, path[1:]):  # noqa: RUF007 - pairwise() came with Python 3.10
        if isinstance(inner, COMPREHENSIONS):
            raise CannotTake(f"a loop inside an expression (line {inner.lineno})")
        if isinstance(outer, ast.Lambda):
            continue
        if isinstance(outer, (ast.expr, ast.keyword)):
            early = _evaluated_before(outer, inner)
        elif isinstance(outer, ast.AugAssign):
            early = [outer.target]
        else:
            continue
        for node in early:
            names = _names_in_plain(node)
            if not isinstance(node, ast.Constant) and not (names and _is_read_again_alike(names, path, code, tree)):
                if not (isinstance(outer, ast.AugAssign) and _grown([outer])):
                    raise CannotTake(_read_before(_text(node), _line(path)))
                continue
            found += names
    return tuple(found)


def _is_plain(value: Any) -> bool:
    numpy = sys.modules.get("numpy")
    return type(value) in PLAIN_VALUES or (numpy is not None and isinstance(value, numpy.generic))


def _read_before(what: str, line: int) -> str:
    return f"`{what}` was read before the call on line {line} and is needed after it"


def _names_in_plain(node: ast.AST) -> List[str]:
    """Of an expression that only reads variables and computes with them."""
    nodes = list(ast.walk(node))
    return (
        [one.id for one in nodes if isinstance(one, ast.Name)]
        if all(isinstance(one, COMPUTING) for one in nodes)
        else []
    )


def _is_read_again_alike(names: List[str], path: List[ast.AST], code: CodeType, tree: ast.Module) -> bool:
    loop = next((node for node in reversed(path) if isinstance(node, ast.For)), None)
    if loop is None or any(isinstance(node, ast.While) for node in path[path.index(loop) :]):
        return False
    is_module = code.co_name == "<module>"
    if not is_module and any(name not in code.co_varnames or name in code.co_cellvars for name in names):
        return False
    statement = next(node for node in reversed(path) if isinstance(node, ast.stmt))
    written = [node for one in loop.body for node in ast.walk(one) if node is not statement]
    before = {node.id for node in written if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)
              and (node.lineno, node.col_offset) < (statement.lineno, statement.col_offset)}  # fmt: skip
    elsewhere = {name for node in ast.walk(tree) if isinstance(node, (ast.Global, ast.Nonlocal)) for name in node.names}
    return not {*names} & (before | elsewhere)


def _check_contexts(path: List[ast.AST]) -> None:
    for node in path:
        for item in node.items if isinstance(node, (ast.With, ast.AsyncWith)) else ():
            if any(word in ast.unparse(item.context_expr) for word in KEEPS_RANDOM_STATE):
                raise CannotTake(f"`{_text(item.context_expr)}` on line {node.lineno} will put random state back")  # type: ignore[attr-defined]


def _check_handlers(path: List[ast.AST]) -> None:
    """In a loop: the turn in which a script is started again may not come to them, as that in which data was over."""
    first = next((number for number, node in enumerate(path) if isinstance(node, (ast.For, ast.While))), len(path))
    for node in path[first:]:
        if isinstance(node, ast.ExceptHandler):
            raise CannotTake(f"it is in a turn that handles an exception (line {node.lineno})")


def _check_one_call(statement: ast.AST) -> None:
    """Before Python 3.11 only the line is known: nothing else may be called in the statement."""
    value = statement.body if isinstance(statement, ast.Lambda) else getattr(statement, "value", None)
    calls = [node for node in ast.walk(statement) if isinstance(node, (ast.Call, ast.YieldFrom))]
    if len(calls) != 1 or calls[0] is not value or isinstance(statement, ast.AugAssign):
        raise CannotTake(f"which call runs on line {getattr(statement, 'lineno', 0)} cannot be told before Python 3.11")


def _evaluated_before(outer: ast.AST, inner: ast.AST) -> List[ast.AST]:
    """Operands that Python has evaluated when it comes to this one. What is called, by its name, stays the same."""
    early: List[ast.AST] = []
    for child in ast.iter_child_nodes(outer):
        if child is inner:
            return early
        if isinstance(child, (ast.expr_context, ast.operator, ast.boolop, ast.unaryop, ast.cmpop)):
            continue
        if isinstance(outer, ast.Call) and child is outer.func and _is_plain_name(child):
            continue
        early.append(child)
    return early


def _is_plain_name(node: ast.AST) -> bool:
    while isinstance(node, ast.Attribute) or (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant)):
        node = node.value
    return isinstance(node, ast.Name)


def _text(node: ast.AST) -> str:
    return ast.unparse(node)[:60]


def _line(path: List[ast.AST]) -> int:
    return next((int(node.lineno) for node in reversed(path) if hasattr(node, "lineno")), 0)
