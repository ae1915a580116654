"""Which framework a log is of, so that the remedies fit."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.diagnosis.plain_text import Line
from holdfast.inside.frameworks import FRAMEWORKS

MOST_LINES = 4000


def framework_in(lines: Sequence[Line]) -> str:
    """The one that is named most; empty where none is."""
    text = "\n".join(line.text for line in lines[-MOST_LINES:])
    counts = {one.module: sum(text.count(word) for word in one.log_words) for one in FRAMEWORKS}
    best = max(counts, key=lambda name: counts[name])
    return best if counts[best] else ""
