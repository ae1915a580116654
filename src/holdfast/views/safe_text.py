"""What a script printed is data: on the way to a terminal it may move no cursor and set no colour."""

from __future__ import annotations

import unicodedata


def safe(text: str) -> str:
    return "".join(char if char in "\n\t" or unicodedata.category(char)[0] != "C" else "·" for char in text)
