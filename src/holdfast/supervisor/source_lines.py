"""What the source says of a place in the script: the line, whether the loop around it may never end, which locks are held there.

Read when stacks are taken, so that the record can be judged later and elsewhere.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from functools import lru_cache

LARGEST_BYTES = 1 << 20
LINE_CHARACTERS = 200

# A loop that looks at the clock ends by itself.
_CLOCK = frozenset(
    {"time", "monotonic", "perf_counter", "now", "process_time", "monotonic_ns", "time_ns", "perf_counter_ns"}
)
_CLOCK_WORDS = re.compile(r"deadline|time_?out|until|elapsed|expires", re.IGNORECASE)
# A loop that trains is the training itself: that it still runs says nothing.
_TRAINS = frozenset(
    {"step", "backward", "fit", "train_step", "train_on_batch", "train_one_epoch", "apply_gradients", "minimize"}
)
_ENDLESS = frozenset({"count", "cycle", "repeat", "iter"})

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module


class Source:
    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        try:
            self._tree: ast.Module | None = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError):
            self._tree = None

    def line(self, number: int) -> str:
        return self._lines[number - 1].strip()[:LINE_CHARACTERS] if 0 < number <= len(self._lines) else ""

    def endless_loop(self, number: int) -> str:
        """The head of the innermost loop around a line that nothing in it is sure to end; empty where there is none."""
        loop = self._endless(number)
        return self.line(loop.lineno) if loop is not None else ""

    def condition_names(self, number: int) -> frozenset[str]:
        """The variables that the condition of such a loop looks at: `size`, `self.left`. Empty where it looks at anything else, too.
        Of a `while True` those that decide on its `break` and go on from turn to turn."""
        loop = self._endless(number)
        if isinstance(loop, ast.While) and not isinstance(loop.test, ast.Constant):
            return _names(loop.test)
        return frozenset().union(*map(_variables, _exits(loop))) & _carried(loop) if loop is not None else frozenset()

    def _endless(self, number: int) -> ast.While | ast.For | None:
        for node in reversed(list(self._around(number))):
            if isinstance(node, (ast.While, ast.For)) and number <= _last_of_body(node) and _may_never_end(node):
                return node
        return None

    def locks_held(self, number: int) -> tuple[str, ...]:
        """What the `with` statements around a line hold, as written, outermost first; not the one that begins there."""
        return tuple(
            ast.unparse(item.context_expr)
            for node in self._around(number)
            if isinstance(node, (ast.With, ast.AsyncWith)) and number >= node.body[0].lineno
            for item in node.items
            if isinstance(item.context_expr, (ast.Name, ast.Attribute, ast.Subscript))
        )

    def _around(self, number: int) -> Iterator[ast.stmt]:
        """Statements of the innermost function around a line that the line is in, outermost first."""
        if self._tree is None:
            return
        within: list[ast.stmt] = []
        level: list[ast.AST] = [self._tree]
        while level:
            node = level.pop()
            for child in ast.iter_child_nodes(node):
                first, last = getattr(child, "lineno", None), getattr(child, "end_lineno", None)
                if first is not None and last is not None and not first <= number <= last:
                    continue
                if (
                    isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
                    and number >= child.body[0].lineno
                ):
                    within.clear()
                elif isinstance(child, ast.stmt):
                    within.append(child)
                level.append(child)
        yield from within


def _last_of_body(node: ast.While | ast.For) -> int:
    return node.body[-1].end_lineno or node.body[-1].lineno


def _may_never_end(node: ast.While | ast.For) -> bool:
    if isinstance(node, ast.For):
        if not (isinstance(node.iter, ast.Call) and _called(node.iter) in _ENDLESS):
            return False
    elif _CLOCK_WORDS.search(ast.unparse(node.test)):
        return False
    for one in _own_nodes(node):
        if isinstance(one, (ast.Yield, ast.YieldFrom, ast.Await)):
            return False
        if isinstance(one, ast.Call) and _called(one) in _CLOCK | _TRAINS:
            return False
    return True


_SIZES = frozenset({"len", "abs", "min", "max", "sum", "any", "all", "bool", "float", "int"})


def _names(test: ast.expr) -> frozenset[str]:
    found: set[str] = set()
    for node in ast.walk(test):
        if isinstance(node, ast.Attribute):
            if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
                return frozenset()
            found.add(f"self.{node.attr}")
        elif isinstance(node, ast.Call) and _called(node) not in _SIZES:
            return frozenset()
        elif isinstance(node, ast.Name) and node.id not in _SIZES | {"self"}:
            found.add(node.id)
    return frozenset(found)


def _exits(loop: ast.While | ast.For) -> Iterator[ast.expr]:
    """The conditions in a loop under which it is left."""
    for node in _own_nodes(loop):
        if isinstance(node, ast.If) and any(
            isinstance(below, (ast.Break, ast.Return, ast.Raise))
            for each in node.body
            for below in (each, *_own_nodes(each))
        ):
            yield node.test


def _carried(loop: ast.While | ast.For) -> frozenset[str]:
    """Variables that become something else by what they were in the turn before: a number drawn anew in each turn is none."""
    of: dict[str, set[str]] = {}
    for node in _own_nodes(loop):
        if isinstance(node, ast.AugAssign):
            for name in _variables(node.target):
                of.setdefault(name, set()).update({name}, _variables(node.value))
        elif isinstance(node, ast.Assign):
            for name in frozenset().union(*map(_variables, node.targets)):
                of.setdefault(name, set()).update(_variables(node.value))
        elif (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and isinstance(node.value.func, ast.Attribute)
        ):
            for name in _variables(node.value.func.value):  # rows.append(row)
                of.setdefault(name, set()).add(name)
    for _ in range(len(of)):
        for above in of.values():
            above.update(*[of.get(name, ()) for name in above])
    return frozenset(name for name, above in of.items() if name in above)


def _variables(expression: ast.expr) -> frozenset[str]:
    """What a call is given counts, too: whatever it makes of that, it makes the same of the same."""
    called = {id(node.func) for node in ast.walk(expression) if isinstance(node, ast.Call)}
    names = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name) and id(node) not in called}
    own = {ast.unparse(node) for node in ast.walk(expression) if isinstance(node, ast.Attribute) and _is_of_self(node)}
    return frozenset((names | own) - {"self"})


def _is_of_self(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id == "self"


def _own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Below a node, without functions that are only defined there."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield child
            yield from _own_nodes(child)


def _called(call: ast.Call) -> str:
    function = call.func
    return (
        function.attr if isinstance(function, ast.Attribute) else function.id if isinstance(function, ast.Name) else ""
    )


def source_of(path: str) -> Source:
    """May wait for a file system that hangs. Without the file, a source that says nothing."""
    try:
        about = os.stat(path)
        return _read(path, about.st_mtime_ns) if about.st_size <= LARGEST_BYTES else Source("")
    except OSError:
        return Source("")


@lru_cache(maxsize=64)
def _read(path: str, _changed_at: int) -> Source:
    with open(path, encoding="utf-8", errors="replace") as file:
        return Source(file.read())
