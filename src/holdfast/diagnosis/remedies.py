"""The remedies of a cause that fit what was seen."""

from __future__ import annotations

from holdfast.causes import CAUSES
from holdfast.vocabulary import Finding, Remedy


def remedies_for(finding: Finding, framework: str) -> tuple[Remedy, ...]:
    """The recipes for the framework seen; all of them when none was. A kind of failure may bring one that is there anyway."""
    seen = "tensorflow" if framework == "keras" else framework
    recipes = CAUSES[finding.cause].recipes
    fitting = [recipe for recipe in recipes if not recipe.framework or not seen or recipe.framework == seen]
    fitting.sort(key=lambda recipe: not recipe.said)
    return tuple(dict.fromkeys(remedy for recipe in fitting if (remedy := recipe.fill(finding, seen)) is not None))
