"""Every cause has words, what it takes to be sure, and remedies that are what they claim to be."""

from __future__ import annotations

import ast
import re
import subprocess
from string import Template

import pytest

from holdfast.diagnosis.catalogue import CATALOGUE, EXPLAINS, GENERIC, Recipe, remedies_for
from holdfast.diagnosis.reading.all_rules import EXCEPTIONS, LINES
from holdfast.vocabulary import Evidence, Finding

CAUSES = [
    "host-memory-exhausted",
    "container-memory-limit",
    "dataset-in-memory",
    "host-memory-leak",
    "swap-thrash",
    "gpu-memory-exhausted",
    "gpu-memory-fragmented",
    "gpu-memory-held-by-others",
    "gpu-memory-leak",
    "shared-memory-exhausted",
    "disk-full",
    "too-many-open-files",
    "too-many-processes",
    "bad-input-values",
    "learning-rate-too-high",
    "exploding-gradients",
    "vanishing-gradients",
    "invalid-math",
    "mixed-precision-overflow",
    "dead-activations",
    "output-loss-mismatch",
    "unscaled-input",
    "learning-rate-too-low",
    "batch-too-small-for-normalization",
    "shape-mismatch",
    "dtype-mismatch",
    "label-out-of-range",
    "index-out-of-range",
    "data-exhausted",
    "corrupt-file",
    "missing-file",
    "checkpoint-mismatch",
    "input-starvation",
    "deadlock",
    "infinite-loop",
    "io-stall",
    "worker-died",
    "worker-spawn-unguarded",
    "cuda-in-forked-worker",
    "unpicklable-worker-object",
    "native-crash",
    "native-library-conflict",
    "illegal-instruction",
    "dependency-conflict",
    "api-incompatible",
    "unhandled-exception",
    "device-mismatch",
    "autograd-inplace",
    "terminated",
    "killed",
    "cpu-oversubscribed",
    "interrupted",
    "terminal-closed",
    "machine-went-down",
    "gpu-driver-too-old",
    "cuda-library-missing",
    "gpu-architecture-unsupported",
    "gpu-not-used",
    "gpu-hardware-fault",
    "gpu-lost",
    "gpu-illegal-access",
    "gpu-overheating",
    "gpu-power-limited",
    "cpu-overheating",
    "collective-timeout",
    "rank-mismatch",
    "straggler",
    "port-in-use",
    "network-lost",
]
RECIPES = [(name, recipe) for name, entry in CATALOGUE.items() for recipe in entry.recipes]


def written(recipe: Recipe) -> str:
    """As a person sees it, with something in the place of what the finding would tell."""
    names = set(re.findall(r"(?<!\$)\$(\w+)", recipe.how))
    return Template(recipe.how).substitute({name: "x" for name in names})


def test_the_catalogue_is_the_list_of_causes() -> None:
    assert sorted(CATALOGUE) == sorted(CAUSES)


def test_every_rule_speaks_of_a_cause_in_the_list() -> None:
    assert {rule.cause for rule in (*EXCEPTIONS, *LINES)} <= set(CAUSES)
    assert set(CAUSES) >= GENERIC and set(EXPLAINS) <= set(CAUSES)


@pytest.mark.parametrize("name", CAUSES)
def test_a_cause_is_told_in_two_sentences_and_with_what_it_takes_to_be_sure(name: str) -> None:
    entry = CATALOGUE[name]
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
    for cause in CATALOGUE:
        found = Finding(cause, 0.9, (Evidence("x", "stderr"),), {kind: True} if kind else {})
        fixes = [(remedy.title, remedy.how) for remedy in remedies_for(found, framework)]
        assert len(fixes) == len(set(fixes)), cause
