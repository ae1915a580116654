"""The lines of `holdfast check`, for people: the worst first, each with its fix below it."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence

from holdfast.checks.contract import Line, Status
from holdfast.views.safe_text import safe

RED, YELLOW, GREEN, PLAIN = "\033[31m", "\033[33m", "\033[32m", "\033[0m"
COLOURS: dict[Status, str] = {"bad": RED, "warn": YELLOW, "ok": GREEN}
INDENT = "      "


def as_text(lines: Sequence[Line], took_s: float, width: int, colour: bool) -> str:
    ordered = [line for status in COLOURS for line in lines if line.status == status]
    return "\n".join([*(_line(line, width, colour) for line in ordered), "", _summary(lines, took_s)])


def _line(line: Line, width: int, colour: bool) -> str:
    body = _wrapped(line.text, width)
    if line.fix:
        body += _wrapped(f"fix: {line.fix}", width)
    word = f"{COLOURS[line.status]}{line.status:<4}{PLAIN}" if colour else f"{line.status:<4}"
    return "\n".join([f"{word}  {body[0]}", *(INDENT + more for more in body[1:])])


def _wrapped(text: str, width: int) -> list[str]:
    """Commands are not broken at their hyphens: they are copied."""
    room = max(40, width - len(INDENT))
    return textwrap.wrap(safe(text), room, break_on_hyphens=False, break_long_words=False) or [""]


def _summary(lines: Sequence[Line], took_s: float) -> str:
    count = Counter(line.status for line in lines)
    said = f"{count['ok']} ok, {count['warn']} to look at, {count['bad']} bad, in {took_s:.1f} s"
    verdict = "this machine is not fit to train as it is" if count["bad"] else "this machine is fit to train"
    return f"{verdict}: {said}"
