"""Tests that can fail: what is asserted, what is skipped, what runs beside what."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

import pytest

from tests import allowed_skips
from tests.assertion_rules import asserting_functions, complaints, files_with_assertions

ROOT = Path(__file__).parents[1]
INSIDE = ROOT / "src" / "holdfast" / "inside"
FILES = files_with_assertions(ROOT / "tests")
ASSERTING = asserting_functions([ast.parse(path.read_text()) for path in FILES])


@pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
def test_no_assertion_is_one_that_cannot_fail(path: Path) -> None:
    assert complaints(path.read_text(), ASSERTING) == []


CANNOT_FAIL = {
    "def test_x(): assert x == 2 or x is None": "def test_x(): assert x == 2",
    "def test_x(): assert y and (x or z)": "def test_x(): assert y and x",
    "def test_x(): assert (x, 'said')": "def test_x(): assert x, 'said'",
    "def test_x(): assert (one for one in x)": "def test_x(): assert [one for one in x]",
    "def test_x(): assert x == x": "def test_x(): assert x() == x()",
    "def test_x(): assert len(x) >= 0": "def test_x(): assert len(x) >= 1",
    "def test_x(): assert (x or 0) < 5": "def test_x(): assert 0 < (x or 0) < 5",
    "def test_x():\n for one in found: assert one": "def test_x():\n assert found\n for one in found: assert one",
    "def test_x():\n for one in f().items(): assert one": "def test_x():\n for one in ONES.items(): assert one",
    "def test_x(): assert all(one for one in found)": "def test_x(): assert found and all(one for one in found)",
    "def test_x(): assert all(one for one in x['a'])": "def test_x():\n assert x['a']\n assert all(one for one in x['a'])",
    "def test_x(): f()": "def check(): assert x\ndef test_x(): check()",
    "def test_x():\n try: assert f()\n except OSError: pass": "def test_x():\n try: assert f()\n except OSError: assert x",
    "def test_x():\n try: g()\n except Exception: pass\n assert x": "def test_x():\n try: g()\n except OSError: x()\n assert x",
    "def test_x():\n with suppress(OSError): assert f()": "def test_x():\n with suppress(OSError): f()\n assert x",
    "@flaky(3)\ndef test_x(): assert x": "def test_x(): assert x",
}


@pytest.mark.parametrize(("bad", "good"), CANNOT_FAIL.items())
def test_each_way_is_found_and_its_mended_twin_is_not(bad: str, good: str) -> None:
    assert len(complaints(bad)) == 1
    assert complaints(good) == []


# -- programs and faults that are written as text


def _imports_in_text(path: Path) -> Iterator[tuple[str, str]]:
    """Of ours, in what a test writes into a file or hands to another Python."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for module, names in re.findall(r"(?:^|[;\n])\s*from (holdfast[\w.]*) import ([\w, ]+)", node.value):
                yield from ((module, word.split(" as ")[0].strip()) for word in names.split(","))
            for module in re.findall(r"(?:^|[;\n])\s*import (holdfast[\w.]*)", node.value):
                yield module, ""


def test_what_a_program_in_a_string_imports_is_there() -> None:
    """A module that is renamed is found by every tool, except in a string."""
    wanted = {
        found
        for folder in ("tests", "bench", "lab")
        for path in (ROOT / folder).rglob("*.py")
        for found in _imports_in_text(path)
    }
    assert len(wanted) > 10
    missing = [f"{module} {name}" for module, name in sorted(wanted) if not _is_there(module, name)]
    assert missing == []


def _is_there(module: str, name: str) -> bool:
    if importlib.util.find_spec(module) is None:
        return False
    found = importlib.import_module(module)
    return not name or hasattr(found, name) or importlib.util.find_spec(f"{module}.{name}") is not None


# -- what is skipped


SKIPS = """
    import pytest

    @pytest.mark.skipif(True, reason="needs an NVIDIA GPU")
    def test_listed(): pass

    @pytest.mark.skipif(True, reason="not today")
    def test_by_a_mark(): pass

    def test_by_a_call(): pytest.skip("the server did not answer")

    def test_that_passes(): assert True is not False
"""


def _pytest(folder: Path, source: str, *options: str, **environment: str) -> tuple[int, str]:
    folder.joinpath("test_some.py").write_text(textwrap.dedent(source))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", os.devnull, "--rootdir", str(folder), "-p", "no:cacheprovider", "-rfEs", *options, str(folder)],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout + done.stderr


def test_a_skip_that_is_not_on_the_list_fails(tmp_path: Path) -> None:
    code, said = _pytest(tmp_path, SKIPS, "-p", "tests.allowed_skips")
    assert code == 1
    assert "skipped, and allowed_skips.toml does not have it: not today" in said
    assert "skipped, and allowed_skips.toml does not have it: the server did not answer" in said
    assert "1 passed" in said


def test_so_does_a_module_that_skips_itself(tmp_path: Path) -> None:
    code, said = _pytest(
        tmp_path, 'import pytest\npytest.importorskip("no_such_thing")\n', "-p", "tests.allowed_skips", CI="true"
    )
    assert code == 2 and "could not import 'no_such_thing'" in said


def test_a_framework_may_be_missing_except_where_the_tree_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    test, said = "tests/inside/test_keras.py::test_x", "needs Keras and TensorFlow"
    monkeypatch.delenv("CI", raising=False)
    assert allowed_skips.objection(test, said) == ""
    monkeypatch.setenv("CI", "true")
    assert "'outside CI', which is not so here" in allowed_skips.objection(test, said)


def test_a_skip_is_allowed_only_while_its_condition_holds(monkeypatch: pytest.MonkeyPatch) -> None:
    test, said = "tests/gpu/test_x.py::test_x[a]", "needs an NVIDIA GPU"
    monkeypatch.setattr(allowed_skips, "has_no_gpu", lambda: True)
    assert allowed_skips.objection(test, said) == ""
    monkeypatch.setattr(allowed_skips, "has_no_gpu", lambda: False)
    assert "'no GPU', which is not so here" in allowed_skips.objection(test, said)


def test_the_list_names_conditions_there_are_and_says_why() -> None:
    rows = allowed_skips.allowed()
    assert len(rows) > 5
    assert {row.when for row in rows} <= set(allowed_skips.CONDITIONS)
    assert not any(len(row.why) < 20 for row in rows)


# -- what runs beside what


SIDE_BY_SIDE = """
    import json, os, time, pytest

    @pytest.fixture(scope="module")
    def made():
        with open(os.environ["SPENT"] + ".made", "a") as file: file.write("made ")

    def spends(name, seconds):
        began = time.monotonic()
        time.sleep(seconds)
        with open(os.environ["SPENT"], "a") as file:
            file.write(json.dumps([name, began, time.monotonic()]) + "\\n")

    @pytest.mark.parametrize("number", range(12))
    def test_shares(number): spends("shares", 0.2)

    @pytest.mark.parametrize("number", range(4))
    def test_uses_what_another_made(number, made): spends("shares", 0.1)

    @pytest.mark.alone
    @pytest.mark.parametrize("number", range(3))
    def test_alone(number): spends("alone", 0.2)
"""


def test_one_that_must_be_alone_has_the_machine_to_itself_and_the_others_share_it(tmp_path: Path) -> None:
    spent = tmp_path / "spent"
    code, said = _pytest(tmp_path, SIDE_BY_SIDE, "-p", "tests.side_by_side", "-n", "3", SPENT=str(spent))
    assert code == 0, said
    times = [json.loads(line) for line in spent.read_text().splitlines()]
    assert len(times) == 19
    beside = [
        {one, other}
        for (one, *first), (other, *second) in combinations(times, 2)
        if first[0] < second[1] and second[0] < first[1]
    ]
    assert {"shares"} in beside
    assert not any("alone" in both for both in beside)
    assert spent.with_suffix(".made").read_text() == "made ", "one worker has all the tests that use it"


LIMITING = re.compile(r"\b(run_in_arena|staged|small_group|Limits\(memory)\b")


def _limits_memory(test: str) -> bool:
    return (
        LIMITING.search(test) is not None and "Hierarchy(" not in test
    )  # which is a folder that looks like the kernel's


def _tests_that_limit_memory() -> Iterator[tuple[str, bool]]:
    """With whether it is marked, by itself or with its module."""
    for path in (path for path in FILES if path.name.startswith("test_")):
        source = path.read_text()
        module = re.search(r"^pytestmark = [^\n]*(?:\n    [^\n]*)*mark\.alone", source, re.M) is not None
        functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
        for node in functions:
            if node.name.startswith("test_") and _limits_memory(ast.get_source_segment(source, node) or ""):
                alone = any("mark.alone" in ast.unparse(mark) for mark in node.decorator_list)
                yield f"{path.relative_to(ROOT)}::{node.name}", module or alone


def test_what_is_killed_for_memory_has_the_machine_to_itself() -> None:
    """The kernel's counter of such kills is everybody's: another test would read its own verdict from it."""
    found = dict(_tests_that_limit_memory())
    assert len(found) > 20
    assert [name for name, alone in found.items() if not alone] == []
