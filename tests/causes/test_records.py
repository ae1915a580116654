"""Every cause has words, what it takes to be sure, and remedies that are what they claim to be."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path
from string import Template

import pytest

from holdfast.causes import CAUSES, FAMILIES
from holdfast.causes.form import CauseRecord, Recipe
from holdfast.causes.form.page import page
from holdfast.causes.form.reached import not_reached
from holdfast.diagnosis.remedies import remedies_for
from holdfast.vocabulary import Evidence, Finding

REPOSITORY = Path(__file__).parents[2]
SOURCES = REPOSITORY / "src" / "holdfast"
RECIPES = [(name, recipe) for name, entry in CAUSES.items() for recipe in entry.recipes]


def written(recipe: Recipe) -> str:
    """As a person sees it, with something in the place of what the finding would tell."""
    names = set(re.findall(r"(?<!\$)\$(\w+)", recipe.how))
    return Template(recipe.how).substitute({name: "x" for name in names})


@pytest.mark.parametrize("record", CAUSES.values(), ids=lambda record: record.id)
def test_a_cause_stands_in_the_file_of_its_name(record: CauseRecord) -> None:
    assert (SOURCES / "causes" / f"{record.id.replace('-', '_')}.py").is_file()
    assert record.family in FAMILIES


@pytest.mark.parametrize("record", CAUSES.values(), ids=lambda record: record.id)
def test_relations_name_other_causes(record: CauseRecord) -> None:
    others = {*record.explains, *record.says_more_than}
    assert others <= set(CAUSES) - {record.id}
    assert not any(record.id in CAUSES[other].says_more_than for other in record.says_more_than), "each says more"


def _named_in(tree: ast.AST) -> set[str]:
    """What the first argument of every `Finding(...)` spells out."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
    named = [call.args[0] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "Finding"]
    return {
        part.value
        for first in named
        for part in ast.walk(first)
        if isinstance(part, ast.Constant) and isinstance(part.value, str) and "-" in part.value
    }


def test_whoever_finds_a_cause_finds_one_that_has_a_record() -> None:
    named = {name for path in SOURCES.rglob("*.py") for name in _named_in(ast.parse(path.read_text()))}
    assert len(named) > 20 and named <= set(CAUSES)


def test_the_documents_tell_of_the_causes_there_are() -> None:
    assert (REPOSITORY / "docs" / "causes.md").read_text() == page()
    reached = len(CAUSES) - len(not_reached(CAUSES.values()))
    assert f"cause of {reached}," in (REPOSITORY / "README.md").read_text()


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_is_told_in_two_sentences_and_with_what_it_takes_to_be_sure(name: str) -> None:
    entry = CAUSES[name]
    assert entry.title and not entry.title.endswith(".")
    assert len(re.findall(r"[.!?](?:\s|$)", entry.meaning)) >= 2, entry.meaning
    assert entry.sure.endswith(".")
    assert bool(entry.recipes) == (name != "interrupted")


@pytest.mark.parametrize(("name", "recipe"), RECIPES)
def test_python_remedies_are_python(name: str, recipe: Recipe) -> None:
    if recipe.language == "python":
        ast.parse(written(recipe), name)
        assert "…" not in recipe.how


def test_shell_remedies_are_shell() -> None:
    """All in one bash, since each start of one costs more than reading them."""
    for name, recipe in RECIPES:
        if recipe.language == "shell":
            done = subprocess.run(["bash", "-n"], input=written(recipe), capture_output=True, text=True, check=False)
            assert done.returncode == 0, (name, recipe.how, done.stderr)


def test_remedies_for_a_framework_are_code_or_a_command() -> None:
    assert all(recipe.language in ("python", "shell") for _, recipe in RECIPES if recipe.framework)


def test_remedies_fit_a_terminal_of_80_columns() -> None:
    for name, recipe in RECIPES:
        assert all(len(line) <= 73 for line in recipe.how.split("\n")), (name, recipe.how)


@pytest.mark.parametrize("framework", ["keras", "torch", "jax", ""])
@pytest.mark.parametrize("kind", ["", "batch", "evaluation", "longer"])
def test_no_fix_is_given_twice(kind: str, framework: str) -> None:
    for cause in CAUSES:
        found = Finding(cause, 0.9, (Evidence("x", "stderr"),), {kind: True} if kind else {})
        fixes = [(remedy.title, remedy.how) for remedy in remedies_for(found, framework)]
        assert len(fixes) == len(set(fixes)), cause
