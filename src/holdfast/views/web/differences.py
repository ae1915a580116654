"""Two runs beside each other: how each ended, what it was started with, on what, and how far it got."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from itertools import zip_longest

from holdfast.masking import masked_command
from holdfast.views.web.document import RunDocument
from holdfast.views.web.sections import machine, seconds, size
from holdfast.vocabulary import Diagnosis


def differences(
    first: RunDocument, second: RunDocument, verdicts: tuple[Diagnosis, Diagnosis]
) -> list[tuple[str, str, str]]:
    sides = [_side(document, diagnosis) for document, diagnosis in zip((first, second), verdicts, strict=True)]
    rows = [(name, sides[0].get(name, ""), sides[1].get(name, "")) for name in dict.fromkeys((*sides[0], *sides[1]))]
    return rows + _arguments(_words(first), _words(second))


def _side(document: RunDocument, diagnosis: Diagnosis) -> dict[str, str]:
    start, end = document.start, document.exit
    loss, steps = document.last("train.loss"), document.last("train.steps_count")
    found = {
        "outcome": diagnosis.outcome,
        "cause": diagnosis.cause.id if diagnosis.cause else "",
        "took": seconds(end.at - start.at) if start and end else "",
        "steps": f"{steps:.0f}" if steps is not None else "",
        "last loss": f"{loss:.6g}" if loss is not None else "",
        "memory of the job, at most": size(document.highest("job.rss_bytes")),
    }
    gpus = [name for name in document.courses.of if name.startswith("gpu") and name.endswith(".memory_used_bytes")]
    if gpus:
        found["memory of a GPU, at most"] = size(max(document.highest(name) or 0.0 for name in gpus))
    return found | dict(machine(document))


def _words(document: RunDocument) -> list[str]:
    words = document.start.data.get("command", ()) if document.start is not None else ()
    return masked_command([*map(str, words)])


def _arguments(first: Sequence[str], second: Sequence[str]) -> list[tuple[str, str, str]]:
    """By option where they have names, so that another order is no difference; the rest word for word."""
    (plain, named), (other_plain, other_named) = _split(first), _split(second)
    rows = [("command", shlex.join(plain), shlex.join(other_plain))]
    for name in dict.fromkeys((*named, *other_named)):
        pairs = list(zip_longest(named.get(name, ()), other_named.get(name, ()), fillvalue="not given"))
        rows += [(f"argument {name}", one or "given", other or "given") for one, other in pairs]
    return rows


def _split(words: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """`--lr 0.1`, `--lr=0.1` and `lr=0.1` are the same; an option that another follows has no value."""
    plain: list[str] = []
    named: dict[str, list[str]] = {}
    rest = list(words)
    while rest:
        word = rest.pop(0)
        name, equals, value = word.partition("=")
        if equals and name and not name.startswith("/"):
            named.setdefault(name.lstrip("-"), []).append(value)
        elif word.startswith("-") and len(word) > 1:
            follows = bool(rest) and not rest[0].startswith("-")
            named.setdefault(word.lstrip("-"), []).append(rest.pop(0) if follows else "")
        else:
            plain.append(word)
    return plain, named
