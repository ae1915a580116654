"""Memory over the size of a batch: through what was measured, and what follows from it for other sizes.

On the CPU it is no line. glibc takes blocks under 32 MiB from its heap, where freed ones of another size leave gaps, and larger
ones in mappings of their own: a small convolution net of 64 rows took 4.3 MiB a row more, one of 256 rows 0.9. So between two
measurements the straight line counts, and beyond the last one the slope of its upper half, never less than what a row saves for
the backward pass.
"""

from __future__ import annotations

from math import ceil
from typing import List, NamedTuple, Optional, Sequence

MOST_ROWS = 1 << 31


class Point(NamedTuple):
    rows: int
    host_bytes: int
    seconds: float  # of one step
    gpu_bytes: Optional[int] = None


class Curve:
    """Of one kind of memory. `fixed` is held whatever the batch; `least_a_row` is what a row surely takes; from `bend` rows on
    the largest blocks are mappings of their own, and more rows may need less than fewer did (20,000 classes took 791 MiB at
    384 rows, 606 MiB at 768)."""

    def __init__(
        self,
        rows: Sequence[int],
        needed: Sequence[int],
        fixed: int = 0,
        least_a_row: float = 0.0,
        bend: float = float("inf"),
    ) -> None:
        pairs = sorted(zip(rows, needed))
        self.rows: List[int] = [at for at, _ in pairs]
        self.bytes: List[int] = []
        for at, size in pairs:  # more rows never need less, but beyond the bend: elsewhere a lower reading is luck
            same_side = bool(self.bytes) and (self.rows[len(self.bytes) - 1] >= bend or at < bend)
            self.bytes.append(max(size, self.bytes[-1]) if same_side else size)
        self.fixed, self.least_a_row, self.bend = fixed, least_a_row, bend

    def a_row(self, upto: Optional[int] = None) -> float:
        """Beyond the last measurement, or beyond that with this index."""
        upto = len(self.rows) - 1 if upto is None else upto
        last, size = self.rows[upto], self.bytes[upto]
        alike = [i for i in range(upto) if (self.rows[i] >= self.bend) == (last >= self.bend)]
        earlier = [i for i in alike if 2 * self.rows[i] <= last] or alike[:1]
        if not earlier:
            return max(self.least_a_row, (size - self.fixed) / last)
        before = earlier[-1]
        return max(self.least_a_row, (size - self.bytes[before]) / (last - self.rows[before]))

    def at(self, rows: int) -> float:
        if rows >= self.rows[-1]:
            return self.bytes[-1] + self.a_row() * (rows - self.rows[-1])
        for i in range(1, len(self.rows)):
            if self.rows[i - 1] <= rows <= self.rows[i]:
                return self._between(i, rows)
        fixed = min(float(self.fixed), self.bytes[0])
        return fixed + (self.bytes[0] - fixed) * rows / self.rows[0]

    def _between(self, i: int, rows: int) -> float:
        """Up to the bend it goes on as before it, whatever was measured on the other side."""
        share = (rows - self.rows[i - 1]) / (self.rows[i] - self.rows[i - 1])
        joined = self.bytes[i - 1] + share * (self.bytes[i] - self.bytes[i - 1])
        if self.rows[i - 1] < rows < self.bend <= self.rows[i]:
            return max(joined, self.bytes[i - 1] + self.a_row(i - 1) * (rows - self.rows[i - 1]))
        return joined

    def rows_within(self, room: float) -> int:
        """The most rows up to which all need no more; 0 where not even one does."""
        if self.at(1) > room:
            return 0
        marks = [*self.rows, *([ceil(self.bend) - 1] if self.rows[0] < self.bend <= self.rows[-1] else [])]
        low = high = 1
        for mark in sorted(marks):
            low, high = high, max(high, mark)
            if self.at(high) > room:
                break
        while high < MOST_ROWS and self.at(high) <= room:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.at(middle) <= room else (low, middle)
        return low
