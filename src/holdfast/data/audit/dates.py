"""Dates in a column of text, by the way they are written. A reader that goes by the first one misreads or drops those of another way."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

from holdfast.data.audit.columns import PLACES
from holdfast.data.formats.arrow_values import mask_of
from holdfast.data.formats.contract import Array

LOOKED_AT = 100  # words of a block: where none of them is a date, none is looked for in the others
_DAY, _NO_MONTH, _MONTH = r"(?:0?[1-9]|[12]\d|3[01])", r"(?:1[3-9]|2\d|3[01])", r"(?:0?[1-9]|1[0-2])"
_NAME = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_END = r"(?:[T ]+\d{1,2}:\d{2}.*)?$"  # a time may follow
_BEFORE = r"^\s*"
# By name, with no date in two of them. Which of two small numbers is the month is open, unless another date of the column says it.
WAYS = {
    "2024-01-31": rf"\d{{4}}-{_MONTH}-{_DAY}",
    "2024/01/31": rf"\d{{4}}/{_MONTH}/{_DAY}",
    "2024.01.31": rf"\d{{4}}\.{_MONTH}\.{_DAY}",
    "31/01/2024": rf"{_NO_MONTH}/{_MONTH}/(?:\d{{4}}|\d{{2}})",
    "01/31/2024": rf"{_MONTH}/{_NO_MONTH}/(?:\d{{4}}|\d{{2}})",
    "01/01/2024": rf"{_MONTH}/{_MONTH}/(?:\d{{4}}|\d{{2}})",
    "31-01-2024": rf"{_NO_MONTH}-{_MONTH}-\d{{4}}",
    "01-31-2024": rf"{_MONTH}-{_NO_MONTH}-\d{{4}}",
    "01-01-2024": rf"{_MONTH}-{_MONTH}-\d{{4}}",
    "31.01.2024": rf"{_DAY}\.{_MONTH}\.\d{{4}}",
    "31 Jan 2024": rf"{_DAY}[ -]{_NAME}[ -]\d{{2,4}}",
    "Jan 31, 2024": rf"{_NAME} {_DAY},? \d{{4}}",
}
OPEN = {"01/01/2024": ("31/01/2024", "01/31/2024"), "01-01-2024": ("31-01-2024", "01-31-2024")}
ANY = re.compile(_BEFORE + "(?:" + "|".join(WAYS.values()) + ")" + _END)


@dataclass
class Way:
    count: int = 0
    places: list[int] = field(default_factory=list)


@dataclass
class Dates:
    ways: dict[str, Way] = field(default_factory=dict)

    def look(self, values: Any, words: Array) -> None:
        """`values`: an Arrow array of text; `words`: those of them that are neither numbers nor missing."""
        import pyarrow.compute as pc  # noqa: PLC0415 - an extra

        first = words.nonzero()[0][:LOOKED_AT]
        if not any(ANY.match(str(values[int(index)].as_py())) for index in first):
            return
        for name, way in WAYS.items():
            is_date = mask_of(pc.match_substring_regex(values, _BEFORE + way + _END)) & words
            if is_date.any():
                self.ways[name] = Way(int(is_date.sum()), is_date.nonzero()[0][:PLACES].tolist())

    def merge(self, later: Dates, rows: int) -> None:
        """`rows`: that stand before those."""
        for name, way in later.ways.items():
            known = self.ways.setdefault(name, Way())
            known.count += way.count
            known.places += [row + rows for row in way.places][: PLACES - len(known.places)]

    def count(self) -> int:
        return sum(way.count for way in self.ways.values())

    def told_apart(self) -> dict[str, Way]:
        """The ways there are for certain, the most frequent first."""
        certain = {
            name: way
            for name, way in self.ways.items()
            if name not in OPEN or not any(known in self.ways for known in OPEN[name])
        }
        return dict(sorted(certain.items(), key=lambda item: -item[1].count))
