"""The form of a rule, and how a family writes them down."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from string import Template

from holdfast.diagnosis.tracebacks import Raised


@dataclass(frozen=True)
class Rule:
    """A text means `cause` when all that is given of type, words and frames is there, and `unless` is not.

    `confidence` is how often that cause was the root where such a text was seen; below a half it is only a guess.
    Named groups of `words` fill `headline`.
    """

    cause: str
    confidence: float
    words: str = ""
    types: frozenset[str] = frozenset()
    unless: str = ""
    frames: str = ""
    outside: str = ""  # frames that must not be there
    deepest: str = ""  # the file that raised it
    headline: str = ""
    details: dict[str, str] = field(default_factory=dict, hash=False)

    @cached_property
    def _words(self) -> re.Pattern[str]:
        return re.compile(self.words, re.IGNORECASE)

    @cached_property
    def _unless(self) -> re.Pattern[str]:
        return re.compile(self.unless, re.IGNORECASE)

    @cached_property
    def _frames(self) -> re.Pattern[str]:
        return re.compile(self.frames)

    def match(self, text: str) -> dict[str, str] | None:
        found = self._words.search(text)
        if found is None or (self.unless and self._unless.search(text)):
            return None
        return {name: value.strip() for name, value in found.groupdict().items() if value}

    def fits(self, raised: Raised) -> dict[str, str] | None:
        if self.types and raised.bare_type not in self.types:
            return None
        if self.frames and not self._passes_through(raised):
            return None
        if self.deepest and not (raised.frames and re.search(self.deepest, raised.frames[-1].file)):
            return None
        if self.outside and any(re.search(self.outside, f"{f.file} {f.code}") for f in raised.frames):
            return None
        return self.match(f"{raised.type}: {raised.message}")

    def _passes_through(self, raised: Raised) -> bool:
        if raised.message.startswith("in user code") and self._frames.search(raised.message):
            return True  # AutoGraph puts the frames into the message
        return any(self._frames.search(f"{f.file} {f.function} {f.code}") for f in raised.frames)

    def heading(self, groups: dict[str, str]) -> str:
        try:
            return Template(self.headline).substitute(groups) if self.headline else ""
        except KeyError:
            return ""


def rule(  # noqa: PLR0917 - a row of a table
    cause: str,
    confidence: float,
    words: str = "",
    types: str = "",
    unless: str = "",
    frames: str = "",
    outside: str = "",
    headline: str = "",
    deepest: str = "",
) -> Rule:
    return Rule(cause, confidence, words, frozenset(types.split()), unless, frames, outside, deepest, headline)


def rules(cause: str, *rows: tuple[float, str] | tuple[float, str, str]) -> tuple[Rule, ...]:
    """Rows of confidence, words and, where it narrows them, exception types."""
    return tuple(rule(cause, row[0], row[1], row[2] if len(row) > 2 else "") for row in rows)


def any_of(*words: str) -> str:
    return "|".join(words)


def flatten(groups: Iterable[Iterable[Rule]]) -> tuple[Rule, ...]:
    return tuple(rule for group in groups for rule in group)
