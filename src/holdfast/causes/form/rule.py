"""The form of a text rule: words that mean the cause, and the messages that prove each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from string import Template


@dataclass(frozen=True, slots=True)
class Example:
    """A message as its program prints it, or as it stands in that program's source."""

    source: str  # package and version, or the log it is from
    text: str


@dataclass(frozen=True, slots=True)
class Says:
    """One alternative of a rule. `near` holds messages that share its words and mean something else."""

    pattern: str
    examples: tuple[Example, ...] = ()
    near: tuple[Example, ...] = ()


@dataclass(frozen=True, slots=True)
class near:
    source: str
    text: str


def says(pattern: str, *examples: tuple[str, str] | near) -> Says:
    """Rows of source and text."""
    found = tuple(Example(*one) for one in examples if isinstance(one, tuple))
    return Says(pattern, found, tuple(Example(one.source, one.text) for one in examples if isinstance(one, near)))


@dataclass(frozen=True)
class Rule:
    """A text means the cause when all that is given of type, words and frames is there, and `unless` is not.

    `confidence` is how often that cause was the root where such a text was seen; below a half it is only a guess.
    Named groups of the words fill `headline`.
    """

    confidence: float
    alternatives: tuple[Says, ...]
    types: frozenset[str] = frozenset()
    unless: str = ""
    frames: str = ""
    outside: str = ""  # frames that must not be there
    deepest: str = ""  # the file that raised it
    headline: str = ""

    @cached_property
    def _words(self) -> re.Pattern[str]:
        return re.compile(either(self.alternatives), re.IGNORECASE)

    @cached_property
    def _unless(self) -> re.Pattern[str]:
        return re.compile(self.unless, re.IGNORECASE)

    def match(self, text: str) -> dict[str, str] | None:
        found = self._words.search(text)
        if found is None or (self.unless and self._unless.search(text)):
            return None
        return {name: value.strip() for name, value in found.groupdict().items() if value}

    def heading(self, groups: dict[str, str]) -> str:
        try:
            return Template(self.headline).substitute(groups) if self.headline else ""
        except KeyError:
            return ""


def rule(
    confidence: float,
    *alternatives: str | Says,
    types: str = "",
    unless: str = "",
    frames: str = "",
    outside: str = "",
    deepest: str = "",
    headline: str = "",
) -> Rule:
    found = tuple(one if isinstance(one, Says) else Says(one) for one in alternatives)
    return Rule(confidence, found, frozenset(types.split()), unless, frames, outside, deepest, headline)


def either(alternatives: Iterable[str | Says]) -> str:
    """All of them as one pattern."""
    return "|".join(one if isinstance(one, str) else one.pattern for one in alternatives)
