"""The form of a remedy: what to do about a cause, as a command or code that runs today."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from string import Template

from holdfast.vocabulary import Finding, Remedy

KERAS, TORCH, JAX = "tensorflow", "torch", "jax"


@dataclass(frozen=True, slots=True)
class Recipe:
    """`$name` in `title` and `how` is filled from the finding; a recipe that needs what the finding does not know is left out."""

    title: str
    how: str
    framework: str = ""  # "" fits all
    language: str = "python"
    when: str = ""  # only for a finding that has this detail, and then before the others
    without: str = ""  # only for a finding that has not this detail: another recipe fills it in
    said: str = ""  # only where the evidence has this, and then before the others; its named groups fill the text
    unsaid: str = ""  # not where the evidence has this: there it would mend something else

    def fill(self, finding: Finding, framework: str, titles: Mapping[str, str]) -> Remedy | None:
        """For the framework seen. Where none was, it is said which one this is for, by its title."""
        if (self.when and not finding.details.get(self.when)) or (self.without and finding.details.get(self.without)):
            return None
        told = "\n".join(item.text for item in finding.evidence)
        found = re.search(self.said, told)
        if found is None or (self.unsaid and re.search(self.unsaid, told)):
            return None
        title = self.title
        if self.framework and not framework:
            title = f"{titles[self.framework]}: {title if title[:2].isupper() else title[0].lower() + title[1:]}"
        known = {**finding.details, **found.groupdict()}
        try:
            return Remedy(Template(title).substitute(known), Template(self.how).substitute(known))
        except (KeyError, ValueError):
            return None


def keras(title: str, how: str, *, said: str = "", unsaid: str = "") -> Recipe:
    return Recipe(title, how, KERAS, said=said, unsaid=unsaid)


def torch(title: str, how: str, *, said: str = "", unsaid: str = "") -> Recipe:
    return Recipe(title, how, TORCH, said=said, unsaid=unsaid)


def jax(title: str, how: str, *, said: str = "", unsaid: str = "") -> Recipe:
    return Recipe(title, how, JAX, said=said, unsaid=unsaid)


def python(title: str, how: str, *, said: str = "", unsaid: str = "") -> Recipe:
    return Recipe(title, how, said=said, unsaid=unsaid)


def shell(title: str, how: str, framework: str = "", *, said: str = "", unsaid: str = "") -> Recipe:
    return Recipe(title, how, framework, language="shell", said=said, unsaid=unsaid)


def words(title: str, how: str, *, said: str = "", unsaid: str = "") -> Recipe:
    return Recipe(title, how, language="text", said=said, unsaid=unsaid)
