"""Lines of a table that are whole and finite, told by their form alone: one regular expression, which costs half of what parsing does."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

PIECE_BYTES = 1 << 18  # what is parsed after all where one line in it is otherwise; smaller ones cost calls
MOST_COLUMNS = 500  # the expression has each of them; RE2 repeats nothing more than 1,000 times
# Of a size that no float64 overflows with; what else is a number is left to the parser.
FINITE = r" *-?(?:\d{1,15}(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,2})?"
QUOTE = b'"'


def proof_of(delimiter: str, numbers: Sequence[bool]) -> str | None:
    """An expression that only lines match which have all their fields, and finite numbers where numbers are meant."""
    if not any(numbers) or len(numbers) > MOST_COLUMNS:
        return None
    plain = re.escape(delimiter)
    text = rf'(?:[^"{plain}\r\n]*|"(?:[^"\r\n]|"")*")'
    line = plain.join(FINITE if is_number else text for is_number in numbers)
    return rf"\A(?:{line}\r?\n)*\z"


def proven(block: bytes, proof: str) -> Iterator[tuple[bool, int, int]]:
    """The block in pieces of whole lines: whether the form of each proves it, its begin and its end."""
    cuts = [0]
    if QUOTE in block:  # a line may end within quotes, which only the whole block tells
        cuts.append(len(block))
    while cuts[-1] < len(block):
        end = block.rfind(b"\n", cuts[-1], cuts[-1] + PIECE_BYTES) + 1
        cuts.append(end or block.find(b"\n", cuts[-1]) + 1 or len(block))
    pieces = pa.Array.from_buffers(
        pa.large_binary(), len(cuts) - 1, [None, pa.py_buffer(np.array(cuts, np.int64)), pa.py_buffer(block)]
    )
    verdicts = pc.match_substring_regex(pieces, proof).to_pylist()
    for verdict, numbers in groupby(range(len(verdicts)), verdicts.__getitem__):
        together = list(numbers)
        yield verdict, cuts[together[0]], cuts[together[-1] + 1]
