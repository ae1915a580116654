"""What keeps the rooms around the flow readable: short files and functions, and no except that hides a bug."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "holdfast"
ROOMS = ("supervisor", "cli", "views", "journal", "policy", "actions", "detectors", "probes")
FILES = [path for room in ROOMS for path in sorted((SOURCE / room).rglob("*.py"))]
EDGES = {"probes/runner.py", "detectors/runner.py"}  # each leaves an event
FILE_LINES, FUNCTION_LINES = 400, 60


def _name(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


def _caught(tree: ast.AST) -> Iterator[str]:
    """What every `except` and every `suppress` names."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ExceptHandler) and isinstance(node.type, ast.Tuple):
            yield from map(ast.unparse, node.type.elts)
        elif isinstance(node, ast.ExceptHandler):
            yield "BaseException" if node.type is None else ast.unparse(node.type)
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress"):
            yield from map(ast.unparse, node.args)


@pytest.mark.parametrize("path", FILES, ids=map(_name, FILES))
def test_a_file_fits_in_one_sitting_and_a_function_on_a_screen(path: Path) -> None:
    text = path.read_text()
    assert text.count("\n") <= FILE_LINES
    functions = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    lengths = {node.name: (node.end_lineno or 0) - node.lineno + 1 for node in functions}
    assert {name: lines for name, lines in lengths.items() if lines > FUNCTION_LINES} == {}


def test_everything_is_caught_at_the_edges_only() -> None:
    caught = {_name(path): set(_caught(ast.parse(path.read_text()))) for path in FILES}
    assert {name for name, kinds in caught.items() if kinds & {"Exception", "BaseException"}} == EDGES
