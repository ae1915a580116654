"""README.md and docs/ name files, links, options and commands that exist."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from holdfast.cli import VERBS
from holdfast.cli.run import RunVerb
from holdfast.cli.why import WhyVerb

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs").rglob("*.md"))]
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
REPOSITORY_PATH = re.compile(r"`((?:bench|docs|examples|lab|src|tests)/[\w./-]+)`")
MODULE = re.compile(r"python -m ((?:bench|lab|examples|tests)(?:\.\w+)*)")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_files_and_commands_exist(page: Path) -> None:
    text = page.read_text()
    missing = [link for link in LINK.findall(text) if not (page.parent / link).exists()]
    missing += [path for path in REPOSITORY_PATH.findall(text) if not (ROOT / path).exists()]
    for name in MODULE.findall(text):
        place = ROOT / name.replace(".", "/")
        if not place.with_suffix(".py").exists() and not (place / "__main__.py").exists():
            missing.append(name)
    assert not missing


def test_the_links_of_the_readme_lead_to_every_page_of_the_docs() -> None:
    linked = set(LINK.findall((ROOT / "README.md").read_text()))
    assert {f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")} <= linked


def test_the_links_of_the_architecture_lead_to_every_page_of_the_design() -> None:
    linked = set(LINK.findall((ROOT / "ARCHITECTURE.md").read_text()))
    assert {f"docs/design/{page.name}" for page in (ROOT / "docs/design").glob("*.md")} == linked


def test_the_commands_of_the_readme_are_there() -> None:
    text = (ROOT / "README.md").read_text()
    scripts = re.findall(r"^    bash (\S+)$", text, re.MULTILINE)
    assert scripts == ["examples/first_run.sh", ".ci/run"]
    assert all((ROOT / script).exists() for script in scripts)
    verbs = set(re.findall(r"^    holdfast (\w+)", text, re.MULTILINE))
    assert verbs and verbs <= set(VERBS)


def test_the_options_of_the_readme_are_those_of_run_and_why() -> None:
    parser = argparse.ArgumentParser(prog="holdfast run", conflict_handler="resolve")
    RunVerb().arguments(parser)
    WhyVerb().arguments(parser)
    known = {name for action in parser._actions for name in action.option_strings}
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", (ROOT / "README.md").read_text()))
    assert named and named <= known | {"--help"}
