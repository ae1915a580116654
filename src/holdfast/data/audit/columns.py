"""What is known of each column's numbers: counted chunk by chunk, merged in order. Nothing here reads a file."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from holdfast.data.formats.contract import Array, Numbers

PLACES = 20  # the first rows that are named, for each column
BLOCK_ELEMENTS = 1 << 18  # 1 MiB of float32: all passes but the first find it in the cache; smaller ones cost calls
FOLDED = 1024  # NumPy's reductions over rows are 2 to 4 times as fast on rows this wide
EXACT_BELOW = 1e15  # squares of float32 above this overflow; they are taken in float64
SAMPLE_ROWS = 256  # of a chunk
SAMPLE_VALUES = 1 << 16
MOST_SAMPLED = 1 << 20  # values kept of a file, for its histograms and quantiles
NEAR_ZERO = 8.0  # spreads that values may lie away from zero and still be squared as they are


class _Seen(NamedTuple):
    """Of the finite values of a piece, for each of its columns."""

    counts: Array
    low: Array
    high: Array
    mean: Array
    m2: Array


@dataclass(frozen=True)
class _Piece:
    block: Numbers
    start: int
    values: Array
    missing: Array | None

    @property
    def where(self) -> slice:
        return slice(self.block.first_column, self.block.first_column + self.values.shape[1])

    def row(self, element: int) -> int:
        return self.block.row(self.start + element)

    def is_surely_finite(self) -> bool:
        """A NaN or infinity shows in the sum of all; so do values near the largest there are, which are looked at then."""
        if self.missing is not None and self.missing.any():
            return False
        return self.values.dtype.kind != "f" or bool(np.isfinite(self.values.sum()))


@dataclass
class Columns:
    """Vectors over the columns of one table."""

    width: int
    rows: int = 0
    finite: Array = field(init=False)
    missing: Array = field(init=False)
    nan: Array = field(init=False)
    plus: Array = field(init=False)
    minus: Array = field(init=False)
    low: Array = field(init=False)
    high: Array = field(init=False)
    low_row: Array = field(init=False)
    high_row: Array = field(init=False)
    mean: Array = field(init=False)
    m2: Array = field(init=False)
    places: dict[int, list[int]] = field(default_factory=dict)
    sample: dict[int, list[Array]] = field(default_factory=dict)
    sampled: int = 0
    is_quick: bool = False  # only what is bad is counted: what breaks training needs no moments, extremes or sample
    known: Columns | None = (
        None  # of the rows before: where an extreme of theirs is not beaten, its row is not looked up
    )

    def __post_init__(self) -> None:
        for name in ("finite", "missing", "nan", "plus", "minus", "low_row", "high_row"):
            setattr(self, name, np.zeros(self.width, np.int64))
        self.low, self.high = np.full(self.width, np.inf), np.full(self.width, -np.inf)
        self.mean, self.m2 = np.zeros(self.width), np.zeros(self.width)

    @property
    def bad(self) -> Array:
        return np.asarray(self.missing + self.nan + self.plus + self.minus)

    def deviation(self) -> Array:
        """Of the finite values, as a whole population."""
        return np.sqrt(np.maximum(self.m2, 0) / np.maximum(self.finite, 1))

    def look(self, block: Numbers) -> None:
        """Adds a block whose rows count from the first row of these columns."""
        values = _as_plain(block.values)
        if not values.size:
            return
        with np.errstate(all="ignore"):
            self._look_at_all(block, values)
        if not self.is_quick:
            self._take_sample(block, values)

    def _look_at_all(self, block: Numbers, values: Array) -> None:
        step = max(1, BLOCK_ELEMENTS // max(1, values.shape[1]))
        for start in range(0, len(values), step):
            missing = None if block.missing is None else block.missing[start : start + step]
            self._look_at(_Piece(block, start, values[start : start + step], missing))

    def _look_at(self, piece: _Piece) -> None:
        if self.is_quick:
            if not piece.is_surely_finite():
                self._count_the_bad(piece)
            return
        low, high = _extremes(piece.values)
        ends = low + high  # a NaN or infinity anywhere in a column shows in its extremes
        if (piece.missing is None or not piece.missing.any()) and np.isfinite(ends).all():
            counts = np.full(piece.values.shape[1], len(piece.values))
            seen = _Seen(counts, low, high, *_moments(piece.values, low, high))
        else:
            seen = self._count_the_bad(piece)
        self._note_extremes(piece, seen)
        self._add(piece.where, seen)

    def _count_the_bad(self, piece: _Piece) -> _Seen:
        values, where = piece.values, piece.where
        present = np.ones(values.shape, bool) if piece.missing is None else ~piece.missing
        good = np.isfinite(values) & present
        self.missing[where] += (~present).sum(axis=0)
        self.nan[where] += (np.isnan(values) & present).sum(axis=0)
        self.plus[where] += ((values == np.inf) & present).sum(axis=0)
        self.minus[where] += ((values == -np.inf) & present).sum(axis=0)
        self._note_places(piece, good)
        counts = good.sum(axis=0)
        low = np.where(good, values, np.inf).min(axis=0)
        high = np.where(good, values, -np.inf).max(axis=0)
        exact = values.astype(np.float64)
        mean = np.where(good, exact, 0.0).sum(axis=0) / np.maximum(counts, 1)
        m2 = (np.where(good, exact - mean, 0.0) ** 2).sum(axis=0)
        return _Seen(counts, low, high, mean, m2)

    def _note_extremes(self, piece: _Piece, seen: _Seen) -> None:
        """Where a new one stands is looked up only then, which is seldom after the first blocks."""
        where = piece.where
        is_lower, is_higher = seen.low < self.low[where], seen.high > self.high[where]
        if self.known is not None:
            is_lower &= seen.low < self.known.low[where]
            is_higher &= seen.high > self.known.high[where]
        for beyond, found, rows in ((is_lower, seen.low, self.low_row), (is_higher, seen.high, self.high_row)):
            for number in np.flatnonzero(beyond):
                element = int(np.argmax(piece.values[:, number] == found[number]))
                rows[where.start + number] = piece.row(element)

    def _note_places(self, piece: _Piece, good: Array) -> None:
        for number in np.flatnonzero(~good.all(axis=0)):
            column = piece.where.start + int(number)
            known = self.places.setdefault(column, [])
            if len(known) >= PLACES:
                continue
            for element in np.flatnonzero(~good[:, number]):
                row = piece.row(int(element))
                if not known or known[-1] != row:
                    known.append(row)
                if len(known) >= PLACES:
                    break

    def _add(self, where: slice, seen: _Seen) -> None:
        """Chan's rule for two means and their squared deviations."""
        counts, low, high, mean, m2 = seen
        before = self.finite[where]
        total = before + counts
        share = counts / np.maximum(total, 1)
        apart = mean - self.mean[where]
        self.m2[where] += np.where(counts > 0, m2 + apart * apart * before * share, 0.0)
        self.mean[where] += np.where(counts > 0, apart * share, 0.0)
        self.finite[where] = total
        self.low[where] = np.minimum(self.low[where], low)
        self.high[where] = np.maximum(self.high[where], high)

    def _take_sample(self, block: Numbers, values: Array) -> None:
        wanted = max(4, min(SAMPLE_ROWS, SAMPLE_VALUES // max(1, values.shape[1])))
        chosen = slice(None, None, max(1, len(values) // wanted))
        with np.errstate(over="ignore"):
            taken = values[chosen].astype(np.float32)
        if block.missing is not None:
            taken[block.missing[chosen]] = np.nan
        self.sample.setdefault(block.first_column, []).append(taken)
        self.sampled += taken.size

    def merge(self, later: Columns, is_beside: bool = False) -> None:
        """Those of the rows that follow, or other columns of the same rows."""
        before = 0 if is_beside else self.rows
        for column, rows in later.places.items():
            known = self.places.setdefault(column, [])
            moved = (row + before for row in rows)
            known += [row for row in moved if not known or known[-1] != row][: PLACES - len(known)]
        for name in ("missing", "nan", "plus", "minus"):
            getattr(self, name)[...] += getattr(later, name)
        self.low_row = np.where(later.low < self.low, later.low_row + before, self.low_row)
        self.high_row = np.where(later.high > self.high, later.high_row + before, self.high_row)
        with np.errstate(all="ignore"):
            self._add(slice(0, self.width), _Seen(later.finite, later.low, later.high, later.mean, later.m2))
        for first, pieces in later.sample.items():
            self.sample.setdefault(first, []).extend(pieces)
        self.sampled += later.sampled
        self.rows = max(self.rows, later.rows) if is_beside else before + later.rows
        if self.sampled > MOST_SAMPLED:
            self.sample = {first: [piece[::2] for piece in pieces[::2]] for first, pieces in self.sample.items()}
            self.sampled = sum(piece.size for pieces in self.sample.values() for piece in pieces)

    def sampled_values(self, column: int) -> Array:
        """Finite ones."""
        for first, pieces in self.sample.items():
            if first <= column < first + pieces[0].shape[1]:
                values = np.concatenate([piece[:, column - first] for piece in pieces])
                return np.asarray(values[np.isfinite(values)])
        return np.empty(0, np.float32)

    def histogram(self, column: int, bins: int) -> tuple[int, ...]:
        """Of the sampled values, between the column's extremes."""
        values = self.sampled_values(column)
        low, high = float(self.low[column]), float(self.high[column])
        if not len(values) or not np.isfinite(high - low):
            return ()
        share = (values.astype(np.float64) - low) / (high - low if high > low else 1.0)
        counts = np.bincount(np.clip(share * bins, 0, bins - 1).astype(np.int64), minlength=bins)
        return tuple(int(count) for count in counts)


def _as_plain(values: Array) -> Array:
    if values.dtype.kind == "b":
        return values.view(np.uint8)
    if values.dtype == np.float16:
        return values.astype(np.float32)
    return values if values.dtype.kind in "iuf" else values.astype(np.float64)


def _folded(piece: Array) -> tuple[Array, Array, int]:
    """Several rows side by side as one long one, and the rows that are left over."""
    width = piece.shape[1]
    times = max(1, FOLDED // max(1, width))
    whole = len(piece) // times * times
    return piece[:whole].reshape(-1, times * width), piece[whole:], times


def _extremes(piece: Array) -> tuple[Array, Array]:
    width = piece.shape[1]
    if width == 1 and piece.flags.c_contiguous:
        return piece.min(axis=None, keepdims=True)[0].astype(np.float64), piece.max(axis=None, keepdims=True)[0].astype(
            np.float64
        )
    folded, rest, times = _folded(piece)
    lows, highs = [], []
    if len(folded):
        lows.append(folded.min(axis=0).reshape(times, width).min(axis=0))
        highs.append(folded.max(axis=0).reshape(times, width).max(axis=0))
    if len(rest):
        lows.append(rest.min(axis=0))
        highs.append(rest.max(axis=0))
    return np.minimum.reduce(lows).astype(np.float64), np.maximum.reduce(highs).astype(np.float64)


_OWN = threading.local()


def _scratch(shape: tuple[int, ...], kind: type[np.floating[Any]]) -> Array:
    """Of this thread, so that no page is asked of the kernel for each block."""
    size = shape[0] * shape[1]
    kept: Array | None = getattr(_OWN, kind.__name__, None)
    if kept is None or kept.size < size:
        kept = np.empty(max(size, BLOCK_ELEMENTS), kind)
        setattr(_OWN, kind.__name__, kept)
    return kept[:size].reshape(shape)


def _moments(piece: Array, low: Array, high: Array) -> tuple[Array, Array]:
    """Mean and squared deviations of finite values, around the middle where they lie far from zero: float32 is exact enough then."""
    width = piece.shape[1]
    small = piece.dtype.itemsize <= 2 or piece.dtype == np.float32
    single = small and max(-low.min(), high.max()) < EXACT_BELOW
    kind = np.float32 if single else np.float64
    is_centred = piece.dtype == kind and bool((np.maximum(-low, high) <= NEAR_ZERO * (high - low)).all())
    middle = np.zeros(width, kind) if is_centred else (low / 2 + high / 2).astype(kind)
    folded, rest, times = _folded(piece)
    total, squares = np.zeros(width), np.zeros(width)
    for part, repeat in ((folded, times), (rest, 1)):
        if len(part):
            apart = part
            if not is_centred:
                apart = np.subtract(part, np.tile(middle, repeat), out=_scratch(part.shape, kind), dtype=kind)
            total += apart.sum(axis=0).reshape(repeat, width).sum(axis=0, dtype=np.float64)
            squares += np.einsum("ij,ij->j", apart, apart).reshape(repeat, width).sum(axis=0, dtype=np.float64)
    shift = total / len(piece)
    return middle.astype(np.float64) + shift, np.maximum(squares - shift * shift * len(piece), 0.0)
