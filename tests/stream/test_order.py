"""Which rows a batch is made of: each row once an epoch, any batch without those before it, windows that hold what they may."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.data.stream.order import Order


def rows_of(order: Order, epoch: int) -> list[list[int]]:
    """The rows of each batch, counted through the chunks as they are stored."""
    starts = np.concatenate([[0], np.cumsum(order.chunk_rows)])
    found, passed = [], order.epoch(epoch)
    for window in range(order.windows):
        held = np.full(passed.rows_of_window(window), -1)
        for segment in passed.segments(window):
            first = starts[segment.chunk] + segment.begin
            held[segment.at : segment.at + segment.rows] = np.arange(first, first + segment.rows)
        mixed = passed.mixed(window)
        held = held if mixed is None else held[mixed]
        for number in passed.batches_of_window(window):
            at = (number - passed.batches_of_window(window).start) * order.batch
            found.append(held[at : at + order.batch].tolist())
    return found


chunks = st.lists(st.integers(0, 40), min_size=1, max_size=12).filter(any)


@given(
    chunks=chunks, batch=st.integers(1, 17), windows=st.integers(1, 5), shuffle=st.booleans(), seed=st.integers(0, 9)
)
@settings(max_examples=80, deadline=None)
def test_each_row_comes_once_an_epoch(chunks: list[int], batch: int, windows: int, shuffle: bool, seed: int) -> None:
    order = Order(np.array(chunks), windows * batch, batch, shuffle, seed)
    batches = rows_of(order, epoch=3)
    assert sorted(row for one in batches for row in one) == list(range(sum(chunks)))
    assert [len(one) for one in batches[:-1]] == [batch] * (order.batches - 1)
    assert len(batches) == order.batches
    if not shuffle:
        assert [row for one in batches for row in one] == list(range(sum(chunks)))


def test_epochs_and_seeds_have_orders_of_their_own_that_come_again() -> None:
    order = Order(np.array([10] * 20), 50, 10, shuffle=True, seed=1)
    assert rows_of(order, 0) == rows_of(order, 0) != rows_of(order, 1)
    assert rows_of(Order(order.chunk_rows, 50, 10, shuffle=True, seed=2), 0) != rows_of(order, 0)


def test_a_last_batch_that_is_not_full_can_be_dropped() -> None:
    order = Order(np.array([7, 6]), 8, 4, shuffle=True, seed=1, drop_last=True)
    assert [len(one) for one in rows_of(order, 0)] == [4, 4, 4] and order.batches == 3


@pytest.mark.parametrize("window_rows", [64, 256])
def test_neighbours_are_torn_apart(window_rows: int) -> None:
    """Rows that lie beside each other on disk are not beside each other in training, though whole chunks are read."""
    order = Order(np.array([16] * 64), window_rows, 16, shuffle=True, seed=5)
    rows = np.array([row for one in rows_of(order, 0) for row in one])
    assert np.mean(np.abs(np.diff(rows)) == 1) < 0.1
