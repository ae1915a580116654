"""Memory over the size of a batch: through what was measured, and what follows from it for other sizes.

On the CPU it is no line. glibc takes blocks under 32 MiB from its heap, where freed ones of another size leave gaps, and larger
ones in mappings of their own: a small convolution net of 64 rows took 4.3 MiB a row more, one of 256 rows 0.9. So between two
measurements the straight line counts, and beyond the last one the slope of its upper half, never less than what a row saves for
the backward pass.
"""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence

MOST_ROWS = 1 << 31


class Point(NamedTuple):
    rows: int
    host_bytes: int
    seconds: float  # of one step
    gpu_bytes: Optional[int] = None


class Curve:
    """Of one kind of memory. `fixed` is held whatever the batch; `least_a_row` is what a row surely takes."""

    def __init__(self, rows: Sequence[int], needed: Sequence[int], fixed: int = 0, least_a_row: float = 0.0) -> None:
        pairs = sorted(zip(rows, needed))
        self.rows: List[int] = [at for at, _ in pairs]
        self.bytes: List[int] = []
        for _, size in pairs:  # more rows never need less: a lower reading is luck
            self.bytes.append(max(size, self.bytes[-1] if self.bytes else 0))
        self.fixed, self.least_a_row = fixed, least_a_row

    def a_row(self) -> float:
        """Beyond the last measurement."""
        last, size = self.rows[-1], self.bytes[-1]
        earlier = [i for i, rows in enumerate(self.rows) if 2 * rows <= last] or ([0] if len(self.rows) > 1 else [])
        if not earlier:
            return max(self.least_a_row, (size - self.fixed) / last)
        before = earlier[-1]
        return max(self.least_a_row, (size - self.bytes[before]) / (last - self.rows[before]))

    def at(self, rows: int) -> float:
        if rows >= self.rows[-1]:
            return self.bytes[-1] + self.a_row() * (rows - self.rows[-1])
        for i in range(1, len(self.rows)):
            if rows <= self.rows[i] and rows >= self.rows[i - 1]:
                share = (rows - self.rows[i - 1]) / (self.rows[i] - self.rows[i - 1])
                return self.bytes[i - 1] + share * (self.bytes[i] - self.bytes[i - 1])
        fixed = min(float(self.fixed), self.bytes[0])
        return fixed + (self.bytes[0] - fixed) * rows / self.rows[0]

    def rows_within(self, room: float) -> int:
        """The most rows that need no more; 0 where not even one does."""
        if self.at(1) > room:
            return 0
        low, high = 1, self.rows[-1]
        while high < MOST_ROWS and self.at(high) <= room:
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.at(middle) <= room else (low, middle)
        return low
