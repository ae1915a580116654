"""Rows that are the same, byte for byte: a hash of each row, compared once all are there. Memory is bounded."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from holdfast.data.audit.columns import PLACES
from holdfast.data.formats.contract import Array

MOST_HASHES = 8_000_000  # 64 MB, and as much again to sort them; of more rows every 2nd, 4th … hash value is kept
LEAST_BYTES = 16  # shorter rows are the same by nature: labels, flags
BLOCK_WORDS = 1 << 15  # stays in the cache
SHARE_BITS, SLOT_BITS = 6, 20  # 4 MiB of slots: most values get one of their own
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
        return scrambled(hashes + np.uint64(SEED))


@dataclass
class Hashes:
    """Of a table's rows, in order. `shift`: only hashes that end in so many zero bits are kept."""

    shift: int = 0
    rows: int = 0
    kept: list[Array] = field(default_factory=list)
    places: list[Array] = field(default_factory=list)  # their rows, once some are left out
    again: int = 0  # rows that stood before already and are left out
    pairs: list[tuple[int, int]] = field(default_factory=list)  # the first of them, each with the row it repeats

    @classmethod
    def for_rows(cls, rows: int | None) -> Hashes:
        shift = 0
        while rows is not None and rows >> shift > MOST_HASHES:
            shift += 1
        return cls(shift)

    def add(self, hashes: Array) -> None:
        self.kept.append(hashes)
        if self.shift or self.places:
            self.places.append(np.arange(self.rows, self.rows + len(hashes)))
        self.rows += len(hashes)
        if self.shift:
            shift, self.shift = self.shift, 0
            self.thin_out(shift)

    def merge(self, later: Hashes) -> None:
        self.thin_out(later.shift)
        later.thin_out(self.shift)
        if self.places or later.places:
            self.places, self.kept = [self.row_numbers()], [self.values()]
            later.places, later.kept = [later.row_numbers()], [later.values()]
        self.kept += later.kept
        self.places += [places + self.rows for places in later.places]
        self.again += later.again
        self.pairs += [(row + self.rows, first + self.rows) for row, first in later.pairs][: PLACES - len(self.pairs)]
        self.rows += later.rows
        if sum(map(len, self.kept)) > MOST_HASHES:
            self.leave_out_repeated()
        while sum(map(len, self.kept)) > MOST_HASHES:  # more rows came than were announced
            self.thin_out(self.shift + 1)

    def thin_out(self, shift: int) -> None:
        if shift <= self.shift:
            return
        values, places = self.values(), self.row_numbers()
        chosen = (values & np.uint64((1 << shift) - 1)) == 0
        self.shift, self.kept, self.places = shift, [values[chosen]], [places[chosen]]

    def leave_out_repeated(self) -> None:
        """Keeps the first of each; so rows that are all the same take no room."""
        if not _is_any_twice(self.kept):
            return
        values = self.values()
        places = self.row_numbers()
        order = np.argsort(values, kind="stable")
        is_first = np.ones(len(order), bool)
        is_first[1:] = values[order[1:]] != values[order[:-1]]
        leaders = np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
        repeated = np.flatnonzero(~is_first)
        shown = repeated[np.argsort(order[repeated], kind="stable")[: PLACES - len(self.pairs)]]
        self.pairs += [(int(places[order[at]]), int(places[order[leaders[at]]])) for at in shown]
        self.again += len(repeated) << self.shift
        firsts = np.sort(order[is_first])
        self.kept, self.places = [values[firsts]], [places[firsts]]

    def values(self) -> Array:
        if len(self.kept) != 1:
            self.kept = [np.concatenate(self.kept) if self.kept else np.empty(0, np.uint64)]
        return self.kept[0]

    def row_numbers(self) -> Array:
        """Of each of the values. Made only when asked for: it takes as much memory as they do."""
        if not self.places:
            return np.arange(len(self.values()))
        if len(self.places) != 1:
            self.places = [np.concatenate(self.places)]
        return self.places[0]


def _is_any_twice(pieces: list[Array]) -> bool:
    """Without sorting all of them, which takes four times as long: values are shared out by their first bits, then each share fits in the cache."""
    shares: list[list[Array]] = [[] for _ in range(1 << SHARE_BITS)]
    for piece in pieces:
        for start in range(0, len(piece), BLOCK_WORDS):
            block = piece[start : start + BLOCK_WORDS]
            share = (block >> np.uint64(64 - SHARE_BITS)).astype(np.uint8)
            ends = np.cumsum(np.bincount(share, minlength=len(shares)))[:-1]
            for number, part in enumerate(np.split(block[np.argsort(share, kind="stable")], ends)):
                shares[number].append(part)
    slots = np.empty(1 << SLOT_BITS, np.uint32)
    return any(_is_twice_in(np.concatenate(share), slots) for share in shares if share)


def _is_twice_in(values: Array, slots: Array) -> bool:
    """Each value is written into a slot. Those whose slot another value took afterwards are looked at again, without the others."""
    while len(values):
        chosen = (values & np.uint64(len(slots) - 1)).astype(np.uint32)
        numbers = np.arange(len(values), dtype=np.uint32)
        slots[chosen] = numbers
        last = slots[chosen]
        others = np.flatnonzero(last != numbers)
        is_same = values[last[others]] == values[others]
        if is_same.any():
            return True
        values = values[others]
    return False


@dataclass(frozen=True)
class Same:
    """`count`: rows that stood before already; `rows`: the first of them, each with the row it repeats."""

    count: int
    rows: tuple[tuple[int, int], ...]
    is_estimate: bool = False


def repeated(hashes: Hashes) -> Same:
    hashes.leave_out_repeated()
    return Same(hashes.again, tuple(hashes.pairs), hashes.shift > 0)


def shared(first: Hashes, second: Hashes) -> Same:
    """Rows of the second that are in the first, too."""
    shift = max(first.shift, second.shift)
    first.thin_out(shift)
    second.thin_out(shift)
    known, known_rows = first.values(), first.row_numbers()
    values, places = second.values(), second.row_numbers()
    found = np.flatnonzero(np.isin(values, known))  # of rows that are the same in the second set the first counts
    pairs = []
    for index in found[:PLACES]:
        pairs.append((int(places[index]), int(known_rows[np.flatnonzero(known == values[index])[0]])))
    return Same(len(found) << shift, tuple(pairs), shift > 0)
