"""What a person put around a text to show it: quoting, indentation, backticks, emphasis."""

from __future__ import annotations

import re
from collections.abc import Callable

SHORT = 400  # lines: longer ones come from a file, and nobody quotes a file
QUOTED = re.compile(r">(?!>) ?")
FENCE = re.compile(r"\s{0,3}(?:```|~~~)\w{0,20}\s*$")
EMPHASISED = re.compile(r"\s*(?:\*\*(?![*\s])(?P<bold>.+[^*\s])\*\*|`(?!`)(?P<code>[^`]+)`)\s*$")
PAIRS = {"`": "`", '"': '"', "'": "'", "“": "”"}
INDENT = 4  # spaces: how Markdown marks code; less is a traceback's own


def unwrapped(lines: list[str]) -> list[str]:
    if len(lines) > SHORT:
        return lines
    lines = [_plain(line) if "`" in line or "**" in line else line for line in lines]
    for way in (_unquoted, _moved_left, _without_a_pair):
        said = [line for line in lines if line.strip() and not FENCE.match(line)]
        if said:
            change = way(said)
            lines = [change(line) for line in lines] if change is not None else lines
    return lines


def _unquoted(said: list[str]) -> Callable[[str], str] | None:
    if not all(QUOTED.match(line) for line in said):
        return None
    return lambda line: QUOTED.sub("", line, count=1) if line.startswith(">") else line


def _moved_left(said: list[str]) -> Callable[[str], str] | None:
    indent = min(len(line) - len(line.lstrip(" ")) for line in said)
    if indent < INDENT:
        return None
    return lambda line: line[indent:] if line[:indent].isspace() else line


def _without_a_pair(said: list[str]) -> Callable[[str], str] | None:
    """One mark before the first word and its fellow after the last."""
    first, last = said[0], said[-1].rstrip()
    mark = first[:1]
    if PAIRS.get(mark) != last[-1:] or len(last) < 3 or (first is said[-1] and mark in last[1:-1]):
        return None
    if first is said[-1]:
        return lambda line: line.rstrip()[1:-1] if line is first else line
    return lambda line: line[1:] if line is first else line.rstrip()[:-1] if line is said[-1] else line


def _plain(line: str) -> str:
    found = EMPHASISED.match(line)
    return (found["bold"] or found["code"]) if found else line
