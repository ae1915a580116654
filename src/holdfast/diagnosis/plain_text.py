"""Output as a person would have read it: no colours, no overwritten progress bars, no rank prefixes."""

from __future__ import annotations

import re

ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
RANK = re.compile(r"^\[(?:rank)?\d+\]:\s?|^\(\w+ pid=\d+\)\s?")
UNPRINTABLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def lines_of(output: bytes) -> list[str]:
    text = ESCAPES.sub("", output.decode("utf-8", "replace"))
    return [UNPRINTABLE.sub("", RANK.sub("", _last_drawn(line))) for line in text.split("\n")]


def _last_drawn(line: str) -> str:
    """What a carriage return leaves visible: the last part drawn over the line."""
    return next((part for part in reversed(line.split("\r")) if part), "")
