"""The remedies of a cause that fit what was seen."""

from __future__ import annotations

from holdfast.causes import CAUSES
from holdfast.inside.frameworks import BY_MODULE
from holdfast.vocabulary import Finding, Remedy

TITLES = {name: framework.title for name, framework in BY_MODULE.items()}


def remedies_for(finding: Finding, framework: str) -> tuple[Remedy, ...]:
    """The recipes for the framework seen; all of them when none was. A kind of failure may bring one that is there anyway."""
    seen = BY_MODULE[framework].remedies_of if framework in BY_MODULE else framework
    recipes = CAUSES[finding.cause].recipes
    fitting = [recipe for recipe in recipes if not recipe.framework or not seen or recipe.framework == seen]
    fitting.sort(key=lambda recipe: not recipe.said)
    filled = (recipe.fill(finding, seen, TITLES) for recipe in fitting)
    return tuple(dict.fromkeys(remedy for remedy in filled if remedy is not None))
