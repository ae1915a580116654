"""Ways in which a test cannot fail, told from its source alone. `complaints(source)` names the line and the way.

Not everything that is found here is wrong, but each can be written so that it is plain: the cases of an `or` apart, the
length of what is gone through asserted, the one error named.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from pathlib import Path

TOO_BROAD = {"AssertionError", "Exception", "BaseException"}
NEVER_EMPTY = {
    "range",
    "zip",
    "enumerate",
    "pairwise",
    "sorted",
    "reversed",
    "product",
}  # if what they are given is not
LITERALS = (ast.Tuple, ast.List, ast.Dict, ast.Set, ast.Lambda, ast.GeneratorExp, ast.JoinedStr)
RETRIES = ("flaky", "rerun", "retry")
Complaint = tuple[int, str]


def complaints(source: str, asserting: frozenset[str] = frozenset()) -> list[Complaint]:
    """`asserting`: functions elsewhere that fail by themselves, as `asserting_functions` finds them."""
    tree = ast.parse(source)
    asserting = asserting | asserting_functions([tree], asserting)
    found = [complaint for rule in RULES for complaint in rule(tree)]
    return sorted(found + list(_without_assertion(tree, asserting)))


def asserting_functions(trees: list[ast.Module], known: frozenset[str] = frozenset()) -> frozenset[str]:
    """Functions that assert, or call one that does. By name: two of one name count as one."""
    functions = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    found = known
    while True:
        more = found | {function.name for function in functions if _can_fail(function, found)}
        if more == found:
            return found
        found = more


def _can_fail(function: ast.FunctionDef, asserting: frozenset[str]) -> bool:
    for node in ast.walk(function):
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.Raise) and node.exc is not None and "AssertionError" in ast.unparse(node.exc):
            return True
        if isinstance(node, ast.Call) and _called(node) in {"raises", "warns", "fail", *asserting}:
            return True
    return False


def _called(call: ast.Call) -> str:
    if isinstance(call.func, ast.Attribute):
        return call.func.attr
    return call.func.id if isinstance(call.func, ast.Name) else ""


def _without_assertion(tree: ast.Module, asserting: frozenset[str]) -> Iterator[Complaint]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_") and not _can_fail(node, asserting):
            yield node.lineno, f"{node.name} asserts nothing"


def _asserts(tree: ast.AST) -> Iterator[ast.Assert]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Assert))


def _either_of_two(tree: ast.Module) -> Iterator[Complaint]:
    """`assert x == 2 or x is None`."""
    for node in _asserts(tree):
        parts = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
        if any(isinstance(part, ast.BoolOp) and isinstance(part.op, ast.Or) for part in [node.test, *parts]):
            yield node.lineno, "either of two is accepted"


def _always_true(tree: ast.Module) -> Iterator[Complaint]:
    """`assert (x, "message")`, `assert x == x`, `assert len(x) >= 0`."""
    for node in _asserts(tree):
        test = node.test
        is_constant = isinstance(test, ast.Constant) and bool(test.value)
        if is_constant or isinstance(test, LITERALS) or (isinstance(test, ast.Compare) and _says_nothing(test)):
            yield node.lineno, "always true"


def _says_nothing(test: ast.Compare) -> bool:
    left, right = ast.unparse(test.left), ast.unparse(test.comparators[0])
    computes = any(
        isinstance(node, ast.Call) for node in ast.walk(test.left)
    )  # twice the same: that may be the question
    if isinstance(test.ops[0], (ast.Eq, ast.LtE, ast.GtE)) and left == right and not computes:
        return True
    return left.startswith("len(") and isinstance(test.ops[0], ast.GtE) and right == "0"


def _nothing_counts_as_small(tree: ast.Module) -> Iterator[Complaint]:
    """`assert (x or 0) < 5` holds where there is no x; `assert 0 < (x or 0) < 5` does not."""
    for node in _asserts(tree):
        for compare in ast.walk(node.test):
            is_below = isinstance(compare, ast.Compare) and isinstance(compare.ops[0], (ast.Lt, ast.LtE))
            if is_below and _is_or_zero(compare.left):
                yield node.lineno, "holds where there is no value at all"


def _is_or_zero(value: ast.expr) -> bool:
    return isinstance(value, ast.BoolOp) and isinstance(value.op, ast.Or) and ast.unparse(value.values[-1]) == "0"


def _maybe_no_turn(tree: ast.Module) -> Iterator[Complaint]:
    """Asserts in a loop over what may be empty, and `assert all(…)` of it."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            filled = _filled_locals(function)
            for line, iterable, inside in _gone_through(function):
                if not _is_filled(iterable, filled) and not _asserted_elsewhere(function, iterable, inside):
                    yield line, f"{ast.unparse(iterable)[:60]} may be empty: then nothing is asserted"


def _filled_locals(function: ast.FunctionDef) -> frozenset[str]:
    """Names that are given something with elements in it, in so many words."""
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if _is_filled(node.value, frozenset()):
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return frozenset(found)


def _gone_through(function: ast.FunctionDef) -> Iterator[tuple[int, ast.expr, ast.AST]]:
    for node in ast.walk(function):
        if isinstance(node, ast.For) and _has(node, ast.Assert):
            yield node.lineno, node.iter, node
        if isinstance(node, ast.Assert):
            calls = [call for call in ast.walk(node.test) if isinstance(call, ast.Call) and call.args]
            for call in calls:
                if ast.unparse(call.func) == "all" and isinstance(call.args[0], ast.GeneratorExp):
                    yield node.lineno, call.args[0].generators[0].iter, call


def _is_filled(value: ast.expr, filled: frozenset[str]) -> bool:
    if isinstance(value, (ast.Tuple, ast.List, ast.Set)):
        return bool(value.elts)
    if isinstance(value, (ast.Dict, ast.Constant)):
        return bool(value.keys if isinstance(value, ast.Dict) else value.value)
    if isinstance(value, ast.BinOp):
        return _is_filled(value.left, filled) or _is_filled(value.right, filled)
    if isinstance(value, ast.Name):
        return value.id in filled or value.id.isupper()
    if isinstance(value, ast.Call):
        if _called(value) in ("items", "values", "keys", "splitlines", "split") and isinstance(
            value.func, ast.Attribute
        ):
            return _called(value) == "split" or _is_filled(value.func.value, filled)
        if _called(value) in ("range", "parameters", "state_dict"):  # of a model: it has some
            return True
        if _called(value) == "zip" and any(keyword.arg == "strict" for keyword in value.keywords):
            return any(_is_filled(argument, filled) for argument in value.args)
        return _called(value) in NEVER_EMPTY and bool(value.args) and _is_filled(value.args[0], filled)
    return False


def _asserted_elsewhere(function: ast.FunctionDef, iterable: ast.expr, inside: ast.AST) -> bool:
    """Somewhere else in the test it is asserted of the same thing that it is there."""
    if isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Attribute) and not iterable.args:
        iterable = iterable.func.value  # x.items()
    elif isinstance(iterable, ast.Call) and isinstance(iterable.func, ast.Name) and iterable.args:
        iterable = iterable.args[0]  # pairwise(x)
    if isinstance(iterable, ast.Subscript) and isinstance(iterable.slice, ast.Slice):
        iterable = iterable.value
    names = {node.id for node in ast.walk(iterable) if isinstance(node, ast.Name)}
    attributes = {ast.unparse(node) for node in ast.walk(iterable) if isinstance(node, (ast.Attribute, ast.Subscript))}
    within = set(map(id, ast.walk(inside)))
    for node in _asserts(function):
        if id(node) in within:
            continue
        outside = [part for part in ast.walk(node.test) if id(part) not in within and isinstance(part, ast.expr)]
        said = {ast.unparse(part) for part in outside if not isinstance(part, ast.Name)}
        if attributes & said or (
            names & {part.id for part in outside if isinstance(part, ast.Name)} and not attributes
        ):
            return True
    return False


def _swallows(tree: ast.Module) -> Iterator[Complaint]:
    """An error of the test itself, or an assertion that failed, is caught and dropped."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and _is_too_broad(node.type) and not _has(node, ast.Raise):
            yield node.lineno, "catches what a failed assertion raises"
        if isinstance(node, ast.Try) and any(_has(part, ast.Assert) for part in node.body):
            for handler in node.handlers:
                if not _has(handler, ast.Raise, ast.Assert):
                    yield handler.lineno, "asserts before the error, and nothing after it"
        if isinstance(node, ast.With):
            suppressing = [item.context_expr for item in node.items if isinstance(item.context_expr, ast.Call)]
            for call in (call for call in suppressing if _called(call) == "suppress"):
                if _has(node, ast.Assert) or any(map(_is_too_broad, call.args)):
                    yield node.lineno, "an assertion may be suppressed, or never reached"


def _has(tree: ast.AST, *kinds: type[ast.AST]) -> bool:
    return any(isinstance(node, kinds) for node in ast.walk(tree))


def _is_too_broad(caught: ast.expr | None) -> bool:
    return caught is None or bool(_names(caught) & TOO_BROAD)


def _names(value: ast.expr) -> set[str]:
    return {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}


def _tried_again(tree: ast.Module) -> Iterator[Complaint]:
    """A test that is repeated until it passes."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            for decorator in node.decorator_list:
                if any(word in ast.unparse(decorator).split("(")[0].lower() for word in RETRIES):
                    yield node.lineno, f"{node.name} is tried again when it fails"


RULES: tuple[Callable[[ast.Module], Iterator[Complaint]], ...] = (
    _either_of_two, _always_true, _nothing_counts_as_small, _maybe_no_turn, _swallows, _tried_again,
)  # fmt: skip


def files_with_assertions(folder: Path) -> list[Path]:
    """Tests and what they import from beside them. Programs that a test starts are none: what they say is asserted on."""
    programs = {"scripts", "faults", "systemd_cases.py"}
    return sorted(path for path in folder.rglob("*.py") if not programs & set(path.parts))
