"""How many pieces a batch is cut into: what did not fit, what did, and when to try larger ones again. Pure.

Every failure makes k larger and k is at most `rows // least`, so a batch ends: trained, or refused.
"""

from __future__ import annotations

import math
from typing import Any, Optional

AGAIN_AFTER = 200  # steps at one size before a larger one is tried…
AGAIN_AT_MOST = 20_000  # …four times as many after each trial that failed


class Pieces:
    """Rows per piece, by the shape of a row: a longer sequence may need smaller pieces, a shorter one not."""

    def __init__(self, k: int = 1, least: int = 1, tries: bool = True) -> None:
        self.least = least  # rows of a piece: batch normalisation wants two
        self.tries = tries  # try larger pieces later: only safe where running out of memory raises instead of killing the process
        self._begin_with = k
        self._rows: dict[Any, int] = {}  # that a piece may have
        self._patience: dict[Any, int] = {}
        self._steps: dict[Any, int] = {}
        self._foreseen: set[Any] = set()  # measured: a larger piece need not be tried
        self.refused = ""  # why batches are not cut; then they are only run whole
        self.verified = False  # that the whole is the sum of its parts
        self.whole = k <= 1  # every batch so far went through as it is

    def count(self, rows: int, tail: Any) -> int:
        if self.refused:
            return 1
        most = self._rows.get(tail)
        if most is None:
            most = self._guess(rows, tail)
        return max(1, min(-(-rows // most), rows // self.least))

    def _guess(self, rows: int, tail: Any) -> int:
        """A shape not seen so far: as the run began."""
        return max(1, -(-rows // self._begin_with))

    def knows(self, tail: Any) -> bool:
        return tail in self._rows

    def foreseen(self, tail: Any, rows: int) -> None:
        self.whole = False
        self._rows[tail] = max(1, rows)
        self._foreseen.add(tail)

    def did_not_fit(self, rows: int, tail: Any, k: int) -> Optional[int]:
        """The next k, which is larger; None where there is none."""
        self.whole = False
        if self.refused or k >= rows // self.least:
            return None
        if self._steps.pop(tail, None) == 0:  # a larger one was just tried, without need
            self._patience[tail] = min(AGAIN_AT_MOST, 4 * self._patience.get(tail, AGAIN_AFTER))
        size = max(self.least, -(-rows // k) // 2)
        while size > self.least and -(-rows // size) <= k:
            size -= 1
        self._rows[tail] = size
        grown = self.count(rows, tail)
        return grown if grown > k else None

    def fitted(self, rows: int, tail: Any, k: int) -> int:
        """The k to go on with: after many steps a larger piece is tried, and after a trial that failed more seldom."""
        steps = self._steps[tail] = self._steps.get(tail, 0) + 1
        if steps >= self._patience.get(tail, AGAIN_AFTER) and k > 1 and self.tries and tail not in self._foreseen:
            self._rows[tail] = 2 * -(-rows // k)
            self._steps[tail] = 0
        return self.count(rows, tail)

    def shrink(self) -> None:
        """Half the size, whatever is known."""
        self._begin_with *= 2
        self._rows = {tail: max(1, rows // 2) for tail, rows in self._rows.items()}
        self.whole = False


class PiecesByLength(Pieces):
    """A new length of rows begins as the lengths near it do: with padding to the longest there are many."""

    def _guess(self, rows: int, tail: Any) -> int:
        size = _size(tail)
        shorter = [(_size(known), most) for known, most in self._rows.items() if _size(known) <= size]
        if not shorter:
            return super()._guess(rows, tail)
        near, most = max(shorter)
        return max(self.least, min(most, int(most * near / max(size, 1)) or 1))


def _size(tail: Any) -> int:
    return sum(math.prod(shape) for shape in tail)


def bounds(rows: int, k: int) -> list[tuple[int, int]]:
    """Where a batch is cut: as even as can be, so that there are two sizes at the most."""
    k = max(1, min(k, rows))
    edges = [rows * i // k for i in range(k + 1)]
    return list(zip(edges[:-1], edges[1:]))  # noqa: RUF007 - Python 3.9
