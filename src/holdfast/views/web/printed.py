"""The end of what a script printed, as text that is safe to show: no escapes, no secrets, no line without an end."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.diagnosis.plain_text import ESCAPES
from holdfast.masking import masked_output
from holdfast.views.safe_text import safe
from holdfast.vocabulary import Output

KEPT_BYTES = 128 << 10  # of each stream
LINES = 300
LINE_CHARACTERS = 2000
LONGEST_SECRET = 2000


class Printed:
    def __init__(self) -> None:
        self._tails: dict[str, bytearray] = {}
        self._cut: set[str] = set()

    def take(self, piece: Output) -> None:
        tail = self._tails.setdefault(piece.stream, bytearray())
        tail += piece.data
        if len(tail) > 2 * KEPT_BYTES:
            del tail[:-KEPT_BYTES]
            self._cut.add(piece.stream)

    def streams(self) -> Iterator[tuple[str, str]]:
        for stream in sorted(self._tails):
            shown = as_shown(bytes(self._tails[stream][-KEPT_BYTES:]), stream in self._cut)
            if shown.strip():
                yield stream, shown


def as_shown(output: bytes, cut: bool = False) -> str:
    """`cut`: it begins in the middle of a word, which may be the rest of a secret."""
    text = ESCAPES.sub("", output.decode("utf-8", "replace"))
    if cut:
        text = text[
            next((i for i, character in enumerate(text[:LONGEST_SECRET]) if character.isspace()), LONGEST_SECRET) :
        ]
    lines = [_last_drawn(line) for line in text.split("\n")[-LINES:]]
    return safe("\n".join(_shortened(line) for line in masked_output("\n".join(lines)).split("\n"))).strip("\n")


def _last_drawn(line: str) -> str:
    """What carriage returns leave visible of a progress bar."""
    return next((part for part in reversed(line.split("\r")) if part), "") if "\r" in line else line


def _shortened(line: str) -> str:
    left_out = len(line) - LINE_CHARACTERS
    return line if left_out <= 0 else f"{line[:LINE_CHARACTERS]} … and {left_out} more characters"
