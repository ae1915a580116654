"""Columns of text: which of them are numbers that somebody wrote down, and what else stands among those."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from holdfast.data.audit.columns import PLACES
from holdfast.data.audit.dates import Dates
from holdfast.data.formats.arrow_values import as_arrow_mask
from holdfast.data.formats.contract import Array, Numbers, Texts
from holdfast.data.formats.written_numbers import missing_mask, parsed

EXAMPLES = 3
SELDOM = 3  # times: where both spellings are about as frequent they may be meant
MOST_VALUES = 10_000
MOST_CLASSES = 200  # a column of more different words is no category


@dataclass
class TextColumn:
    """Numbers in it are counted as numbers elsewhere; here is what is none."""

    column: int
    rows: int = 0  # before what is merged next
    numbers: int = 0
    missing: int = 0
    words: int = 0
    places: list[int] = field(default_factory=list)  # of words
    missing_places: list[int] = field(default_factory=list)
    examples: list[str] = field(default_factory=list)
    values: Counter[str] = field(default_factory=Counter)  # of words: the classes, where it is the label
    too_many: bool = False
    dates: Dates = field(default_factory=Dates)
    is_among_numbers: bool = False  # most of the column are numbers, and blocks of numbers alone do not come here

    def look(self, block: Texts) -> Numbers | None:
        """Returns the numbers that it holds, with everything else as missing, where numbers are expected."""
        missing = missing_mask(block.values)
        numbers, is_number = parsed(block.values)
        words = ~missing & ~is_number
        self.missing += int(missing.sum())
        self.numbers += int(is_number.sum())
        self.words += int(words.sum())
        _note(self.missing_places, missing, block.row_of)
        _note(self.places, words, block.row_of)
        self._take_examples(block.values, words)
        if words.any() and block.row_of is None:
            self.dates.look(block.values, words)
        if block.expects_numbers:
            self.is_among_numbers = True
            missing = (~is_number).reshape(-1, 1)
            return Numbers(self.column, numbers.reshape(-1, 1), row_of=block.row_of, missing=missing)
        return None

    def _take_examples(self, values: Any, words: Array) -> None:
        if not words.any():
            return
        for index in np.flatnonzero(words)[: EXAMPLES - len(self.examples)]:
            self.examples.append(str(values[int(index)].as_py())[:40])
        if not self.too_many:
            counted = values.filter(as_arrow_mask(words)).value_counts()
            for each in counted:
                self.values[str(each["values"].as_py())] += int(each["counts"].as_py())
                if len(self.values) > MOST_VALUES:
                    self.too_many = True
                    self.values.clear()
                    break

    def merge(self, later: TextColumn) -> None:
        for name in ("places", "missing_places"):
            known = getattr(self, name)
            known += [row + self.rows for row in getattr(later, name)][: PLACES - len(known)]
        self.dates.merge(later.dates, self.rows)
        self.numbers += later.numbers
        self.missing += later.missing
        self.words += later.words
        self.is_among_numbers = self.is_among_numbers or later.is_among_numbers
        self.examples = [*self.examples, *later.examples][:EXAMPLES]
        self.too_many = self.too_many or later.too_many
        self.values.update(later.values)
        if self.too_many or len(self.values) > MOST_VALUES:
            self.too_many = True
            self.values.clear()

    def other_spellings(self) -> dict[str, str]:
        """Of a category: rarer values that are another one but for case and spaces, each with that one."""
        if not 2 <= len(self.values) <= min(MOST_CLASSES, self.words // 2):
            return {}
        usual: dict[str, str] = {}
        odd: dict[str, str] = {}
        for value, count in self.values.most_common():
            known = usual.setdefault(" ".join(value.casefold().split()), value)
            if known != value and self.values[known] >= SELDOM * count:
                odd[value] = known
        return odd

    @property
    def number_share(self) -> float:
        return self.numbers / max(1, self.numbers + self.words)


def _note(known: list[int], mask: Array, row_of: Array | None) -> None:
    elements = np.flatnonzero(mask)[: PLACES - len(known)]
    known += [int(row) for row in (elements if row_of is None else row_of[elements])]
