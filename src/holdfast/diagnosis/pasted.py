"""What a person put around a text to show it: quoting, indentation, backticks, emphasis, HTML, a margin."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from functools import partial

from holdfast.diagnosis.reflowed import joined, split_up

SHORT = 400  # lines: longer ones come from a file, and nobody quotes a file
QUOTED = re.compile(r">(?!>) ?")
FENCE = re.compile(r"\s{0,3}(?:```|~~~)\w{0,20}\s*$")
EMPHASISED = re.compile(r"\s*(?:\*\*(?![*\s])(?P<bold>.+[^*\s])\*\*|`(?!`)(?P<code>[^`]+)`)\s*$")
PAIRS = {"**": "**", "`": "`", '"': '"', "'": "'"}
ENTITIES = re.compile(r"&(?:[lg]t|amp|quot|apos|nbsp|#(?:39|34|x27|x22|x2F|96|160));")
TAGS = re.compile(
    r"</?(?:pre|code|p|div|span|br|b|strong|em|blockquote|details|summary|li|ul|td|tr)(?: [^<>\n]{0,200})?/?>",
    re.IGNORECASE,
)
# Where the text itself begins on a line that has something before it.
TEXT_BEGINS = (
    re.compile(r"Traceback \(most recent call last\):"),
    re.compile(r" {2}File \"[^\"\n]{1,300}\", line \d"),
    re.compile(
        r"(?<![\w.])(?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{2,60}(?:Error|Exception)(?: \(see above for traceback\))? ?: "
    ),
    re.compile(r"Exception has occurred: |Fatal Python error: "),
    re.compile(r"\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d"),
)
MARGIN = 120  # characters
NO_MARGIN = re.compile(r"^[-*•] |[-=]{1,5}>|\.py|\bin\b|>>>|\d%|(?:Error|Exception)\b")
DIGITS = re.compile(r"\d+")
ROUNDS = 3  # quoted, fenced and indented at once


def unwrapped(lines: list[str]) -> list[tuple[int, str]]:
    """Each line with the number, from 0 on, of the one it came from."""
    if len(lines) > SHORT:
        return list(enumerate(lines))
    lines = [_without_html(line) if "&" in line or "<" in line else line for line in lines]
    numbered = split_up([_plain(line) if "`" in line or "**" in line else line for line in lines])
    for _ in range(ROUNDS):
        before = numbered
        for way in (_unquoted, moved_left, _between_backticks, _without_a_pair):
            said = [line for _, line in numbered if line.strip() and not FENCE.match(line)]
            change = way(said) if said else None
            if change is not None:
                numbered = [(number, change(line)) for number, line in numbered]
        if numbered == before:
            break
    return joined(numbered)


def _without_html(line: str) -> str:
    return html.unescape(TAGS.sub("", line)).replace("\u00a0", " ") if ENTITIES.search(line) else TAGS.sub("", line)


def _unquoted(said: Sequence[str]) -> Callable[[str], str] | None:
    quoted = sum(QUOTED.match(line) is not None for line in said)
    if quoted < len(said) and (quoted < 2 or 2 * quoted < len(said)):
        return None
    return lambda line: QUOTED.sub("", line, count=1) if line.startswith(">") else line


def moved_left(said: Sequence[str]) -> Callable[[str], str] | None:
    if not said or len(said) > SHORT:
        return None
    indents = [line[: len(line) - len(line.lstrip())] for line in said]
    indent = min(indents, key=len)
    if not indent or not all(other.startswith(indent) for other in indents):
        return None
    return lambda line: line.removeprefix(indent)


def without_a_margin(said: Sequence[str]) -> Callable[[str], str] | None:
    """The same words before each line, but for their digits: a clock, a worker's name, a line's number."""
    for begins in TEXT_BEGINS if len(said) <= SHORT else ():
        places = [(line, found) for line in said if (found := begins.search(line))]
        if not places or any(not line[: found.start()].strip() for line, found in places):
            continue
        line, found = places[0]
        margin = line[: found.start()].rstrip() if found.start() <= MARGIN else ""
        if not margin or NO_MARGIN.search(margin):
            continue
        form = re.compile(r"\d+".join(map(re.escape, DIGITS.split(margin))) + " ?")
        bare = [form.sub("", other, count=1) for other in said if form.match(other)]
        if len(bare) > 1:
            left = moved_left([line for line in bare if line.strip()])
            return partial(_off, form, left or str)
    return None


def _off(form: re.Pattern[str], left: Callable[[str], str], line: str) -> str:
    return left(form.sub("", line, count=1)) if form.match(line) else line


def _without_a_pair(said: Sequence[str]) -> Callable[[str], str] | None:
    """One mark before the first word and its fellow after the last."""
    first, last = said[0], said[-1].rstrip()
    mark = next((mark for mark in PAIRS if first.startswith(mark) and not first.startswith("***")), "")
    size = len(mark)
    if not mark or not last.endswith(PAIRS[mark]) or len(last) < size + 2:
        return None
    if len(said) == 1 and (mark in last[size:-size] or not last[size:-size].strip()):
        return None
    if len(said) == 1:
        return lambda line: line.rstrip()[size:-size] if line is first else line
    return lambda line: line[size:] if line is first else line.rstrip()[:-size] if line is said[-1] else line


def _between_backticks(said: Sequence[str]) -> Callable[[str], str] | None:
    """A sentence with the text in the middle of it."""
    marked = [line for line in said if "`" in line]
    if len(marked) != 2 or any(line.count("`") != 1 for line in marked):
        return None
    return lambda line: (
        line.partition("`")[2] if line is marked[0] else line.partition("`")[0] if line is marked[1] else line
    )


def _plain(line: str) -> str:
    found = EMPHASISED.match(line)
    return (found["bold"] or found["code"]) if found else line
