"""Rows that are the same, byte for byte: a hash of each row, compared once all are there. Memory is bounded."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from holdfast.data.formats.contract import Array

MOST_HASHES = 8_000_000  # 64 MB, and as much again to sort them; of more rows every 2nd, 4th … hash value is kept
LEAST_BYTES = 16  # shorter rows are the same by nature: labels, flags
BLOCK_WORDS = 1 << 15  # stays in the cache
SEED = 20_260_101
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))


def scrambled(words: Array) -> Array:
    """The finaliser of splitmix64: every bit of a word depends on every bit of what came in."""
    mixed = words.astype(np.uint64)
    mixed ^= mixed >> np.uint64(30)
    mixed *= _MIX[0]
    mixed ^= mixed >> np.uint64(27)
    mixed *= _MIX[1]
    mixed ^= mixed >> np.uint64(31)
    return mixed


class RowHash:
    """Multiplies the words of a row by random odd numbers and adds them up."""

    def __init__(self, row_bytes: int) -> None:
        self._words = -(-row_bytes // 8)
        self._padding = self._words * 8 - row_bytes
        random = np.random.default_rng(SEED)
        self._factors = random.integers(1, 1 << 63, self._words, dtype=np.uint64) | np.uint64(1)

    def __call__(self, rows: Array) -> Array:
        if self._padding:
            rows = np.pad(rows, ((0, 0), (0, self._padding)))
        words = np.ascontiguousarray(rows).view(np.uint64)
        hashes = np.empty(len(words), np.uint64)
        step = max(1, BLOCK_WORDS // max(1, self._words))
        mixed = np.empty((min(step, len(words)), self._words), np.uint64)
        for start in range(0, len(words), step):
            piece = words[start : start + step]
            # Round floats end in zeros, which would stay at the end of every product: their first bits are put there.
            out = np.right_shift(piece, np.uint64(29), out=mixed[: len(piece)])
            out ^= piece
            hashes[start : start + step] = np.einsum("ij,j->i", out, self._factors)
        return scrambled(hashes)


@dataclass
class Hashes:
    """Of a table's rows, in order. `shift`: only hashes that end in so many zero bits are kept."""

    shift: int = 0
    rows: int = 0
    kept: list[Array] = field(default_factory=list)
    places: list[Array] = field(default_factory=list)

    @classmethod
    def for_rows(cls, rows: int | None) -> Hashes:
        shift = 0
        while rows is not None and rows >> shift > MOST_HASHES:
            shift += 1
        return cls(shift)

    def add(self, hashes: Array) -> None:
        chosen = np.flatnonzero((hashes & np.uint64((1 << self.shift) - 1)) == 0) if self.shift else slice(None)
        self.kept.append(hashes[chosen])
        if self.shift:
            self.places.append(np.asarray(chosen, np.int64) + self.rows)
        self.rows += len(hashes)

    def merge(self, later: Hashes) -> None:
        later.thin_out(self.shift)
        if later.shift > self.shift:
            self.thin_out(later.shift)
        self.kept += later.kept
        self.places += [places + self.rows for places in later.places]
        self.rows += later.rows
        while sum(map(len, self.kept)) > MOST_HASHES:  # more rows came than were announced
            self.thin_out(self.shift + 1)

    def thin_out(self, shift: int) -> None:
        if shift <= self.shift:
            return
        values, places = self.values(), self.row_numbers()
        chosen = (values & np.uint64((1 << shift) - 1)) == 0
        self.shift, self.kept, self.places = shift, [values[chosen]], [places[chosen]]

    def values(self) -> Array:
        if len(self.kept) != 1:
            self.kept = [np.concatenate(self.kept) if self.kept else np.empty(0, np.uint64)]
        return self.kept[0]

    def row_numbers(self) -> Array:
        """Of each of the values. Made only when asked for: it takes as much memory as they do."""
        if not self.shift:
            return np.arange(len(self.values()))
        return np.concatenate(self.places) if self.places else np.empty(0, np.int64)


@dataclass(frozen=True)
class Same:
    """`count`: rows that stood before already; `rows`: the first of them, each with the row it repeats."""

    count: int
    rows: tuple[tuple[int, int], ...]
    is_estimate: bool = False


def repeated(hashes: Hashes, most: int) -> Same:
    values = hashes.values()
    order = np.sort(values)
    twice = order[1:][order[1:] == order[:-1]]
    del order
    if not len(twice):
        return Same(0, ())
    places = hashes.row_numbers()
    candidates = np.flatnonzero(np.isin(values, np.unique(twice)))
    seen: dict[int, int] = {}
    pairs = []
    for index in candidates:
        value, row = int(values[index]), int(places[index])
        if value in seen:
            pairs.append((row, seen[value]))
            if len(pairs) >= most:
                break
        seen.setdefault(value, row)
    return Same(len(twice) << hashes.shift, tuple(pairs), hashes.shift > 0)


def shared(first: Hashes, second: Hashes, most: int) -> Same:
    """Rows of the second that are in the first, too."""
    shift = max(first.shift, second.shift)
    first.thin_out(shift)
    second.thin_out(shift)
    known, known_rows = first.values(), first.row_numbers()
    values, places = second.values(), second.row_numbers()
    found = np.flatnonzero(np.isin(values, known))
    pairs = []
    for index in found[:most]:
        pairs.append((int(places[index]), int(known_rows[np.flatnonzero(known == values[index])[0]])))
    return Same(len(found) << shift, tuple(pairs), shift > 0)
