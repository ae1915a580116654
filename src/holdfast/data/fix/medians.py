"""The exact median of a column, however long it is: collected where it fits, else narrowed down pass by pass."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from holdfast.data.formats.contract import Array

MOST_VALUES = 16_000_000  # 128 MB
DIGIT_BITS = 16
Values = Callable[[], Iterator[Array]]  # each call goes through the finite values again


def median(values: Values, count: int) -> float:
    if count <= MOST_VALUES:
        pieces = [piece.astype(np.float64) for piece in values()]
        return float(np.median(np.concatenate(pieces)))
    low, high = _ranked(values, (count - 1) // 2), _ranked(values, count // 2)
    return low / 2 + high / 2


def _ranked(values: Values, rank: int) -> float:
    """Four passes, 16 bits of the value each, the first ones first: 65,536 counters are all it holds."""
    prefix, known_bits = np.uint64(0), 0
    while known_bits < 64:
        counts = np.zeros(1 << DIGIT_BITS, np.int64)
        shift = np.uint64(64 - known_bits - DIGIT_BITS)
        for piece in values():
            keys = _ordered_bits(piece.astype(np.float64))
            if known_bits:
                keys = keys[(keys >> np.uint64(64 - known_bits)) == prefix]
            digits = (keys >> shift) & np.uint64((1 << DIGIT_BITS) - 1)
            counts += np.bincount(digits.astype(np.int64), minlength=1 << DIGIT_BITS)
        before = np.cumsum(counts)
        digit = int(np.searchsorted(before, rank, side="right"))
        rank -= int(before[digit - 1]) if digit else 0
        prefix = (prefix << np.uint64(DIGIT_BITS)) | np.uint64(digit)
        known_bits += DIGIT_BITS
    return _value_of(prefix)


def _ordered_bits(values: Array) -> Array:
    """Unsigned integers that are ordered as the floats are."""
    bits = (values + 0.0).view(np.uint64)  # -0.0 becomes 0.0
    top = np.uint64(1 << 63)
    return np.where(bits & top, ~bits, bits | top)


def _value_of(key: np.uint64) -> float:
    top = np.uint64(1 << 63)
    bits = key ^ top if key & top else ~key
    return float(np.array([bits], np.uint64).view(np.float64)[0])
