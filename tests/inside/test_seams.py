"""Private names of frameworks stand in one file per framework, and what is lost without one is told."""

from __future__ import annotations

import ast
import re
import sys
import types
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from holdfast.inside.seams import ABILITIES, CHECKPOINT, DETAIL, NUMERICS, RESCUE, RESUME, TELEMETRY, Abilities, Seam

INSIDE = Path(__file__).parents[2] / "src" / "holdfast" / "inside"
FOLDERS = ("keras", "tensorflow", "torch")
ALL_FOLDERS = (*FOLDERS, ".")
PYTHONS_OWN = {"_fields", "_replace", "_getframe", "_current_frames", "_active"}
PRIVATE = re.compile(r"^_[a-zA-Z]\w*$")
INNER_MODULE = re.compile(r"^(keras\.src|tensorflow\.python|torch\._)\b")


def _ours() -> set[str]:
    """Private names that our own code defines: methods, functions, attributes of self, slots."""
    found = set(PYTHONS_OWN)
    for file in INSIDE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                found.add(node.name)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self":
                found.add(node.attr)
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                found |= {target.id for target in targets if isinstance(target, ast.Name)}
    return found


def _private_names(file: Path, ours: set[str]) -> Iterator[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    parts_of_texts = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        name = ""
        if isinstance(node, ast.Attribute):
            name = node.attr
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in parts_of_texts:
            name = node.value
        own = name in ours or name.startswith("_holdfast")
        if INNER_MODULE.match(name) or (PRIVATE.match(name) and not own):
            yield f"{file.name}:{node.lineno} {name}"


@pytest.mark.parametrize("folder", ALL_FOLDERS)
def test_private_names_of_frameworks_are_known_to_one_file(folder: str) -> None:
    ours = _ours()
    files = [file for file in (INSIDE / folder).glob("*.py") if not file.name.endswith("seams.py")]
    assert files
    assert [found for file in files for found in _private_names(file, ours)] == []
    if folder in FOLDERS:
        assert list(_private_names(INSIDE / folder / "seams.py", ours)), "there is nothing to be found by this test"


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_the_functions_use_is_in_the_table(folder: str) -> None:
    """Or asked for with a default, which is a way of its own to do without."""
    tree = ast.parse((INSIDE / folder / "seams.py").read_text(encoding="utf-8"))
    used = {
        node.attr
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Attribute) and PRIVATE.match(node.attr)
    }
    module = import_module(f"holdfast.inside.{folder}.seams")
    listed = {part for seam in _tables(module) for part in (*seam.name.split("."), seam.assigned)}
    assert used - listed <= {"_sequence_nr", "_defaults", "_update_count"}, (
        "of objects that no class in Python's reach makes"
    )


def test_what_looks_at_the_numbers_of_keras_use_switches_them_off_where_it_is_missing() -> None:
    table = import_module("holdfast.inside.keras.seams")
    listed = {part for seam in _tables(table) if NUMERICS in seam.serves for part in (seam.name, seam.assigned)}
    listed = {part.split(".")[-1] for part in listed}
    functions = {
        node.name: {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute) and PRIVATE.match(one.attr)}
        for node in ast.walk(ast.parse((INSIDE / "keras" / "seams.py").read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef)
    }
    used = {
        name
        for file in (INSIDE / "keras" / "numerics").glob("*.py")
        for function in re.findall(r"\bseams\.(\w+)", file.read_text(encoding="utf-8"))
        for name in functions.get(function, ())
    }
    assert used and used <= listed


def test_whether_a_pipeline_can_be_looked_into_is_asked_where_its_module_has_moved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow.python.data.ops.dataset_ops", None)
    assert not import_module("holdfast.inside.tensorflow.seams").knows_inputs()


def _tables(module: types.ModuleType) -> list[Seam]:
    found: list[Seam] = []
    for value in vars(module).values():
        if isinstance(value, tuple) and value and all(isinstance(one, Seam) for one in value):
            found += value
    for function in ("of_lightning", "of_hf", "lightning_state"):
        found += getattr(module, function, lambda _name: ())("lightning.pytorch.loops.x")
    return found


class _Thing:
    def __init__(self) -> None:
        self._held = 1

    def made(self) -> Any:
        inner = 1
        return lambda: inner


@pytest.fixture
def framework(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    module = types.ModuleType("a_framework")
    module.Thing = _Thing  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_framework", module)
    return module


@pytest.mark.parametrize(
    ("seam", "there"),
    [
        (Seam("a_framework", "Thing.made", (RESCUE,)), True),
        (Seam("a_framework", "Thing.lost", (RESCUE,)), False),
        (Seam("another", "", (RESCUE,)), False),
        (Seam("a_framework", "", (RESCUE,)), True),
        (Seam("a_framework", "Thing", (RESCUE,), assigned="_held"), True),
        (Seam("a_framework", "Thing", (RESCUE,), assigned="_dropped"), False),
        (Seam("a_framework", "Thing", (RESCUE,), inner="inner"), True),
        (Seam("a_framework", "Thing", (RESCUE,), inner="outer"), False),
    ],
    ids=str,
)
def test_a_name_is_looked_for_where_it_should_be(framework: types.ModuleType, seam: Seam, there: bool) -> None:
    assert seam.is_there() is there


class _Events:
    def __init__(self) -> None:
        self.told: list[dict[str, Any]] = []

    def event(self, kind: str, **data: Any) -> None:
        self.told.append({"kind": kind, **data})


def test_what_is_lost_is_told_with_the_name_and_the_versions_that_have_it(framework: types.ModuleType) -> None:
    lost = [Seam("a_framework", f"Thing.{name}", (CHECKPOINT, RESUME)) for name in ("lost", "gone")]
    detail = Seam("a_framework", "Thing.nicety", (DETAIL,))
    can = Abilities("Thing", "9.1", "1 to 8", [*lost, detail, Seam("a_framework", "Thing.made", (TELEMETRY,))])
    events = _Events()
    can.tell(events, "thing", [TELEMETRY, CHECKPOINT])
    (told,) = events.told
    assert told["telemetry"] == "yes" and told["resume"] == "off" and told["rescue"] == "off"
    reason = "a_framework.Thing.lost and 1 more names are not in Thing 9.1 (known: 1 to 8)"
    assert told["checkpoint"] == f"no: {reason}"
    assert told["missing"] == [str(seam) for seam in (*lost, detail)]
    assert can.can(TELEMETRY) and not can.can(RESUME)


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_seam_says_what_is_lost_without_it(folder: str) -> None:
    served = [set(seam.serves) for seam in _tables(import_module(f"holdfast.inside.{folder}.seams"))]
    assert served and all(abilities and abilities <= {*ABILITIES, NUMERICS, DETAIL} for abilities in served)
