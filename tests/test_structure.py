"""The shape of the source that no linter of ours looks at: lengths, and where everything may be caught."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "holdfast"
FILES = sorted(SOURCE.rglob("*.py"))
FILE_LINES, FUNCTION_LINES = 400, 60
BROAD = {"Exception", "BaseException"}

# How often a file may catch everything: the three edges, each of which leaves an event, the checks, where it becomes a line, and the bootstrap with the stacks, which run before
# any of them is loaded.
MAY_CATCH_EVERYTHING = {
    "checks/runner.py": 1,
    "data/stream/ahead.py": 1,  # of a thread: raised again where the batches are asked for
    "detectors/runner.py": 2,
    "inside/bootstrap/sitecustomize.py": 3,
    "inside/never_raise.py": 5,
    "inside/stacks.py": 2,
    "probes/runner.py": 1,
}
# Findings are recorded for people: written by the watcher, shown by `log`. Nobody else may read them back; what was found in
# a run is found again from its readings (`cli/replay.py`).
MAY_KNOW_RECORDED_FINDINGS = {
    "recorded_events.py", "supervisor/tick.py", "views/log_text.py", "views/metrics.py", "views/tensorboard_export.py",
}  # fmt: skip


def test_there_is_source_to_look_at() -> None:
    assert len(FILES) > 200


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(SOURCE)) for path in FILES])
def test_a_file_is_read_in_one_sitting_and_catches_everything_only_where_it_may(path: Path) -> None:
    source = path.read_text()
    tree = ast.parse(source)
    assert len(source.splitlines()) <= FILE_LINES
    assert list(too_long(tree)) == []
    assert len(list(broad_excepts(tree))) <= MAY_CATCH_EVERYTHING.get(str(path.relative_to(SOURCE)), 0), (
        "an error that nobody foresaw is swallowed here"
    )


def test_findings_that_were_recorded_are_shown_and_never_read_back() -> None:
    assert {
        str(path.relative_to(SOURCE)) for path in FILES if knows_recorded_findings(ast.parse(path.read_text()))
    } == (MAY_KNOW_RECORDED_FINDINGS)
    for reading in ('window.events("finding")', "from holdfast.recorded_events import Exit, RecordedFinding"):
        assert knows_recorded_findings(ast.parse(reading))


def knows_recorded_findings(tree: ast.Module) -> bool:
    constants = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    imported = {name.name for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) for name in node.names}
    return "finding" in constants or "RecordedFinding" in imported


def test_what_is_told_is_ranked_once() -> None:
    """Texts, kernel, driver and detectors beside each other: one call for a recorded run, one for a pasted log."""
    calls = {
        str(path.relative_to(SOURCE)): found
        for path in FILES
        if (found := sum(_calls(node, "ranked") for node in ast.walk(ast.parse(path.read_text()))))
    }
    assert calls == {"diagnosis/verdict.py": 2}


def _calls(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name


def too_long(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES:
                yield f"{node.name}: {lines} lines"


def broad_excepts(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.ExceptHandler)
            and (node.type is None or BROAD & _names(node.type))
            and not _goes_on(node)
        ):
            yield node.lineno
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("suppress") and BROAD & _names(node):
            yield node.lineno


def _goes_on(handler: ast.ExceptHandler) -> bool:
    """Nothing is swallowed by one that does a thing or two in a row and raises what it caught."""
    *before, last = handler.body
    return isinstance(last, ast.Raise) and last.exc is None and all(isinstance(each, ast.Expr) for each in before)


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


@pytest.mark.parametrize(
    "broad",
    ["try: f()\nexcept: pass", "try: f()\nexcept Exception: pass", "try: f()\nexcept (OSError, BaseException): pass",
     "with contextlib.suppress(Exception): f()", "try: f()\nexcept Exception:\n  if g(): pass\n  raise"],
)  # fmt: skip
def test_every_way_to_catch_everything_is_seen(broad: str) -> None:
    assert len(list(broad_excepts(ast.parse(broad)))) == 1


def test_a_narrow_one_and_a_long_function_are_told_apart() -> None:
    assert list(broad_excepts(ast.parse("try: f()\nexcept (OSError, ValueError): pass"))) == []
    assert list(broad_excepts(ast.parse("try: f()\nexcept BaseException as e:\n  g(e)\n  raise"))) == []
    body = "    x = 1\n" * FUNCTION_LINES
    assert list(too_long(ast.parse(f"def f():\n{body}"))) == [f"f: {FUNCTION_LINES + 1} lines"]
    assert list(too_long(ast.parse(f"def f():\n{body[: -len('    x = 1') - 1]}"))) == []
