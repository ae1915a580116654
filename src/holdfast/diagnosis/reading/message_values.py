"""The sizes and types a message holds, under the names the remedies use."""

from __future__ import annotations

import re

FORMS = (
    re.compile(r"mat1 and mat2 shapes cannot be multiplied \(\d+x(?P<got>\d+) and (?P<want>\d+)x(?P<out>\d+)\)"),
    re.compile(r"size mismatch, m1: \[\d+ x (?P<got>\d+)\], m2: \[(?P<want>\d+) x (?P<out>\d+)\]"),
    re.compile(
        r"weight of size \[(?P<filters>\d+), \d+.{0,40}to have (?P<want_channels>\d+) channels, but got (?P<got_channels>\d+)"
    ),
    re.compile(r"expected axis -1 of input shape to have value (?P<want_features>\d+)"),
    re.compile(r"[Tt]arget (?P<label>\d+) is out of bounds"),
    re.compile(r"label value of (?P<label>\d+) which is outside the valid range"),
    re.compile(r"indices\[[\d,]{0,40}\] = (?P<index>\d+) is not in \[0, (?P<size>\d+)\)"),
    re.compile(r"index (?P<index>\d+) is out of bounds for (?:dimension|axis) \d+ with size (?P<size>\d+)"),
    re.compile(r"expected scalar type (?P<type_wanted>\w+) but found (?P<type_found>\w+)"),
    re.compile(r"Found dtype (?P<type_found>\w+) but expected (?P<type_wanted>\w+)"),
)
METHODS = {"Double": "double", "Float": "float", "Long": "long", "Half": "half", "Int": "int", "BFloat16": "bfloat16"}


def figures_in(message: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for form in FORMS:
        if match := form.search(message[:4000]):
            found |= {name: value for name, value in match.groupdict().items() if value}
    for name, at_least in (("label", "outputs"), ("index", "rows")):
        if name in found and len(found[name]) < 16:
            found[at_least] = str(int(found[name]) + 1)
    if (method := METHODS.get(found.get("type_wanted", ""))) is not None:
        found["method"] = method
    return found
