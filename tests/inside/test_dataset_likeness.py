"""A data set is known by a few values of its data, and by nothing that changes while it is used."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from holdfast.inside.torch import dataset_likeness  # noqa: E402
from holdfast.inside.torch.dataset_likeness import likeness, same_data  # noqa: E402

ROWS = torch.arange(400.0).reshape(100, 4)


class Ordered(torch.utils.data.Dataset):  # type: ignore[misc]
    __hash__ = None  # type: ignore[assignment]

    def __init__(self) -> None:
        self.rows, self.order, self.cache = ROWS, torch.arange(100), torch.zeros(100, 4)

    def __eq__(self, other: object) -> bool:
        raise AssertionError("data sets are not compared")


def test_the_rows_of_another_fold_are_other_data() -> None:
    one, same, other = (torch.utils.data.TensorDataset(rows) for rows in (ROWS[:50], ROWS[:50].clone(), ROWS[50:]))
    assert same_data(likeness(one), likeness(same)) and not same_data(likeness(one), likeness(other))
    parts = torch.utils.data.ConcatDataset([one, other]), torch.utils.data.ConcatDataset([one, same])
    assert not same_data(*map(likeness, parts))


def test_what_changes_while_it_is_used_tells_nothing_and_an_order_is_state() -> None:
    data = Ordered()
    first = likeness(data)
    assert set(first) == {"rows", "order", "cache"}
    assert not dataset_likeness.is_redrawn(data, "order", data.order)
    data.order.copy_(data.order.flip(0))
    data.cache[3:70] = 1
    assert set(likeness(data)) == {"rows"} and same_data(likeness(data), first)
    assert dataset_likeness.is_redrawn(data, "order", data.order)
    assert not dataset_likeness.is_redrawn(data, "cache", data.cache) and not dataset_likeness.is_redrawn(
        data, "rows", data.rows
    )


def test_small_data_of_a_turn_is_kept_and_large_data_is_not() -> None:
    small, large = (
        torch.utils.data.TensorDataset(ROWS),
        torch.utils.data.TensorDataset(torch.empty(1).expand(5_000_000)),
    )
    assert dataset_likeness.keep(small) and dataset_likeness.is_kept(small) and small in dataset_likeness.kept()
    assert not dataset_likeness.keep(large) and not dataset_likeness.is_kept(large)
