"""The computation of a loss, run once more: the statements of the script that led to it, or the trainer's function.

A backward pass is called on a tensor; what made it stands in the function that called: assignments to the names it was
computed from, as far as their values have a graph. Those are run again in a copy of the function's variables, at their own
lines. Nothing that fetches data, prints or updates is among them, since its value has no graph.
"""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import os
from types import CodeType, FrameType
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from ...numerics.user_lines import described
from ..tensor_nests import tensors_of

STEPS = {"step", "backward", "update"}  # what a part that is run again may not call
DEPTH = 3
FILE_BYTES = 2_000_000
CONTEXTS = ("autocast", "enable_grad", "set_grad_enabled", "no_grad", "sdpa_kernel")
Block = List[ast.stmt]
Position = Tuple[int, int]  # line and column


class LossAgain:
    """How to compute it again, from a frame that has called `backward`."""

    def __init__(self, torch: Any, frame: FrameType) -> None:
        self._torch = torch
        self.variables: Dict[str, Any] = {**frame.f_globals, **frame.f_locals}
        self.own: Dict[str, Any] = dict(frame.f_locals)
        self.path = frame.f_code.co_filename
        self._code: Optional[CodeType] = None
        self.line: Optional[str] = None  # where the loss gets its value
        tree = _parsed(self.path)
        found = _around(tree, frame.f_lineno) if tree is not None else None
        if found is not None:
            block, call = found
            self._code = self._sliced(block, call)

    @property
    def can(self) -> bool:
        return self._code is not None

    def run(self, changed: Optional[Dict[str, Any]] = None) -> Any:
        """The loss. With other values for some names, where they are given."""
        assert self._code is not None
        variables = {**self.variables, **(changed or {})}
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            exec(self._code, variables)
        return variables["_holdfast_loss"]

    def _sliced(self, block: Block, call: ast.Call) -> Optional[CodeType]:
        wanted = self._what_is_differentiated(call)
        if wanted is None:
            return None
        needed = _names(wanted)
        kept = self._filtered(block, (call.lineno, call.col_offset), needed)
        made_at = kept[-1].lineno if kept and isinstance(wanted, ast.Name) else call.lineno
        self.line = described(self.path, made_at)[0]
        last = ast.copy_location(ast.Assign([ast.Name("_holdfast_loss", ast.Store())], wanted), call)
        body: Block = [*kept, last]
        if self._calls_a_step(body):
            return None
        tree = ast.fix_missing_locations(ast.Module(body, type_ignores=[]))
        return compile(tree, self.path, "exec", dont_inherit=True)

    def _what_is_differentiated(self, call: ast.Call) -> Optional[ast.expr]:
        """`loss` in `loss.backward()`, `scaler.scale(loss).backward()`, `accelerator.backward(loss)`."""
        assert isinstance(call.func, ast.Attribute)
        receiver = call.func.value
        if isinstance(receiver, ast.Name) and isinstance(self.variables.get(receiver.id), self._torch.Tensor):
            return receiver
        if call.args and isinstance(receiver, (ast.Name, ast.Attribute)):
            return call.args[0]
        if (
            isinstance(receiver, ast.Call)
            and isinstance(receiver.func, ast.Attribute)
            and receiver.func.attr == "scale"
        ):
            return receiver.args[0] if receiver.args else None
        return receiver

    def _filtered(self, block: Block, before: Position, needed: Set[str]) -> Block:
        """Backwards: what assigns a needed name whose value has a graph, and so on for what it reads."""
        kept: Block = []
        for statement in reversed(block):
            if (statement.lineno, statement.col_offset) >= before:  # several may stand on one line
                continue
            part = self._part(statement, before, needed)
            if part is not None:
                kept.insert(0, part)
        return kept

    def _part(self, statement: ast.stmt, before: Position, needed: Set[str]) -> Optional[ast.stmt]:
        targets = _targets(statement)
        if targets is not None:
            if not any(name in needed and self._has_graph(name) for name in targets):
                return None
            needed |= _names(statement)
            return statement
        if isinstance(statement, ast.With):
            body = self._filtered(statement.body, before, needed)
            items = [item for item in statement.items if any(word in ast.unparse(item) for word in CONTEXTS)]
            if not body:
                return None
            needed |= {name for item in items for name in _names(item)}
            if not items:
                return ast.copy_location(ast.If(ast.Constant(True), body, []), statement)
            return ast.copy_location(ast.With(items, body), statement)
        if isinstance(statement, (ast.If, ast.For)):
            body = self._filtered(statement.body, before, needed)
            other = self._filtered(statement.orelse, before, needed)
            if isinstance(statement, ast.For) and body:  # what a turn leaves is read by the next one
                body = self._filtered(statement.body, before, needed)
            if not body and not other:
                return None
            head = statement.test if isinstance(statement, ast.If) else statement.iter
            needed |= _names(head)
            body = body or [ast.copy_location(ast.Pass(), statement)]
            if isinstance(statement, ast.If):
                return ast.copy_location(ast.If(statement.test, body, other), statement)
            return ast.copy_location(ast.For(statement.target, statement.iter, body, other), statement)
        return None

    def _has_graph(self, name: str) -> bool:
        value = self.variables.get(name)
        if value is None:
            return name in self.own or name not in self.variables
        return any(tensor.grad_fn is not None for tensor in tensors_of(value, self._torch))

    def _calls_a_step(self, body: Block) -> bool:
        called = {
            node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            for statement in body
            for node in ast.walk(statement)
            if isinstance(node, ast.Call)
        }
        if called & STEPS:
            return True
        codes = [getattr(self.variables.get(name), "__code__", None) for name in called]
        return any(_steps_within(code, self.variables, DEPTH) for code in codes if code is not None)


def _steps_within(code: CodeType, variables: Dict[str, Any], depth: int) -> bool:
    if STEPS & set(code.co_names):
        return True
    inner = [getattr(variables.get(name), "__code__", None) for name in code.co_names] if depth else []
    return any(_steps_within(each, variables, depth - 1) for each in inner if each is not None and each is not code)


def _parsed(path: str) -> Optional[ast.Module]:
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > FILE_BYTES:
            lines = linecache.getlines(path)  # of a notebook's cell
            return ast.parse("".join(lines)) if lines else None
        with open(path, encoding="utf-8") as file:
            return ast.parse(file.read())
    except (OSError, SyntaxError, ValueError):
        return None


def _around(tree: ast.Module, line: int) -> Optional[Tuple[Block, ast.Call]]:
    """The statements of the innermost loop or function around a line, and the last call of `backward` in them up to it."""
    block: Block = tree.body
    for node in _outer_first(tree):
        if isinstance(node, (ast.For, ast.While, ast.FunctionDef)) and _begins(node.body) <= line <= _ends(node.body):
            block = node.body
    calls = [
        node
        for statement in block
        for node in ast.walk(statement)
        if isinstance(node, ast.Call) and node.lineno <= line and _is_backward(node)
    ]
    return (block, max(calls, key=lambda node: node.lineno)) if calls else None


def _begins(block: Block) -> int:
    return block[0].lineno


def _ends(block: Block) -> int:
    return block[-1].end_lineno or block[-1].lineno


def _outer_first(tree: ast.AST) -> Iterator[Any]:
    for node in ast.walk(tree):  # breadth first: what is around comes before what is inside
        if hasattr(node, "lineno"):
            yield node


def _is_backward(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in ("backward", "manual_backward")


def _names(node: ast.AST) -> Set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}


def _targets(statement: ast.stmt) -> Optional[Set[str]]:
    """Names it assigns; None where it is no assignment. One that also stores elsewhere is none of ours."""
    if isinstance(statement, ast.Assign):
        targets: List[ast.expr] = statement.targets
    elif isinstance(statement, (ast.AugAssign, ast.AnnAssign)):
        targets = [statement.target]
    else:
        return None
    if any(isinstance(part, (ast.Attribute, ast.Subscript)) for target in targets for part in ast.walk(target)):
        return set()
    return {name for target in targets for name in _names(target)}
