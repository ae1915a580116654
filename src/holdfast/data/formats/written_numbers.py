"""Numbers as people write them into tables, and the marks they write where there is none."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.data.formats.arrow_values import as_arrow_words, mask_of, only_where, values_of
from holdfast.data.formats.contract import Array

# Not here: "nan" and "inf", which are numbers to every reader and are counted as what they are.
MISSING_MARKS = (
    "", "NA", "N/A", "n/a", "na", "Na", "#N/A", "#NA", "<NA>", "null", "NULL", "Null", "None", "none", "?", "-", "--", ".",
    "missing", "MISSING", "Missing", "unknown", "#VALUE!", "#REF!", "#DIV/0!", "nil", "NIL",
)  # fmt: skip
NUMBER = r"^\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|(?i:nan|inf|infinity))\s*$"


def missing_mask(values: Any) -> Array:
    """Of an Arrow array of text: nulls and marks."""
    import pyarrow.compute as pc  # noqa: PLC0415 - an extra

    marks = pc.is_in(pc.utf8_trim_whitespace(values), value_set=as_arrow_words(MISSING_MARKS))
    return mask_of(pc.or_(marks, pc.is_null(values)))


def parsed(values: Any) -> tuple[Array, Array]:
    """The numbers, and a mask of where there are some."""
    import pyarrow as pa  # noqa: PLC0415 - an extra
    import pyarrow.compute as pc  # noqa: PLC0415

    trimmed = pc.utf8_trim_whitespace(values)
    is_number = mask_of(pc.match_substring_regex(trimmed, NUMBER)) & mask_of(pc.is_valid(trimmed))
    plain = pc.utf8_ltrim(trimmed, characters="+")
    numbers = values_of(pc.cast(only_where(is_number, plain), pa.float64()))
    return np.where(is_number, numbers, np.nan), is_number
