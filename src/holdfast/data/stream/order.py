"""Which rows a batch is made of: a pure function of the seed, the epoch and the batch's number.

The chunks of an epoch are put in a random order, one behind the other, and cut into windows of rows; the rows of a window are mixed. So a
place in the data is two numbers, going there reads one window, and the disk is read in whole chunks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

IntArray = np.ndarray[Any, np.dtype[np.int64]]


class Segment(NamedTuple):
    """Rows of one chunk that lie beside each other in a window."""

    chunk: int
    begin: int  # in the chunk
    at: int  # in the window
    rows: int


@dataclass(frozen=True, slots=True)
class Order:
    chunk_rows: IntArray
    window_rows: int  # a multiple of the batch, so that no batch lies in two windows
    batch: int
    shuffle: bool
    seed: int
    drop_last: bool = False

    @property
    def rows(self) -> int:
        return int(self.chunk_rows.sum())

    @property
    def batches(self) -> int:
        return self.rows // self.batch if self.drop_last else -(-self.rows // self.batch)

    @property
    def windows(self) -> int:
        return -(-self.rows // self.window_rows)

    @property
    def batches_in_window(self) -> int:
        return self.window_rows // self.batch

    def epoch(self, number: int) -> Epoch:
        chunks = np.arange(len(self.chunk_rows))
        if self.shuffle:
            chunks = np.random.default_rng([self.seed, number]).permutation(chunks)
        return Epoch(self, number, chunks, np.concatenate([[0], np.cumsum(self.chunk_rows[chunks])]))


@dataclass(frozen=True, slots=True)
class Epoch:
    order: Order
    number: int
    chunks: IntArray
    ends: IntArray  # of the rows before each chunk

    def segments(self, window: int) -> Iterator[Segment]:
        first = window * self.order.window_rows
        last = min(first + self.order.window_rows, self.order.rows)
        place = int(np.searchsorted(self.ends, first, side="right")) - 1
        row = first
        while row < last:
            end = min(int(self.ends[place + 1]), last)
            if end > row:
                yield Segment(int(self.chunks[place]), row - int(self.ends[place]), row - first, end - row)
            row, place = end, place + 1

    def rows_of_window(self, window: int) -> int:
        return min(self.order.window_rows, self.order.rows - window * self.order.window_rows)

    def mixed(self, window: int) -> IntArray | None:
        """The order of the rows in a window; None where they stay as they are."""
        if not self.order.shuffle:
            return None
        random = np.random.default_rng([self.order.seed, self.number, window])
        return random.permutation(self.rows_of_window(window))

    def batches_of_window(self, window: int) -> range:
        first = window * self.order.batches_in_window
        return range(first, min(first + self.order.batches_in_window, self.order.batches))
