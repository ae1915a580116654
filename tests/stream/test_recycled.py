"""Memory of batches that are gone is used again, and of one that anybody holds in any form it is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import holdfast.data
from holdfast.data.stream.recycled import ALIGNED, MOST_FREE, Recycled

SHAPE, FLOATS = (64, 1024), np.dtype(np.float32)


def address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def test_what_is_gone_is_used_again() -> None:
    memory = Recycled()
    first = memory.empty(SHAPE, FLOATS)
    assert address(first) % ALIGNED == 0
    where = address(first)
    del first
    assert address(memory.empty(SHAPE, FLOATS)) == where


def as_a_slice(array: Any) -> Any:
    return array[3:5]


def as_other_bytes(array: Any) -> Any:
    return array.reshape(-1)[7:].view(np.uint8)


def as_a_memoryview(array: Any) -> Any:
    return memoryview(array)


def as_a_torch_tensor(array: Any) -> Any:
    import torch

    return torch.from_numpy(array)[1:].reshape(-1)


@pytest.mark.parametrize("hold", [as_a_slice, as_other_bytes, as_a_memoryview, as_a_torch_tensor])
def test_what_is_held_is_not_given_again(hold: Callable[[Any], Any]) -> None:
    memory = Recycled()
    first = memory.empty(SHAPE, FLOATS)
    where, held = address(first), hold(first)
    del first
    assert address(memory.empty(SHAPE, FLOATS)) != where
    del held
    assert where in {address(one) for one in [memory.empty(SHAPE, FLOATS) for _ in range(2)]}


def test_no_more_is_kept_than_is_needed() -> None:
    memory = Recycled()
    many = [memory.empty(SHAPE, FLOATS) for _ in range(3 * MOST_FREE)]
    many.clear()
    assert sum(map(len, memory._free.values())) == MOST_FREE


def test_text_and_little_arrays_are_plain_ones() -> None:
    memory = Recycled()
    assert memory.empty((100_000,), np.dtype(object)).flags.owndata
    assert memory.empty((3,), FLOATS).flags.owndata


@pytest.mark.parametrize("shuffle", [False, True])
def test_batches_that_are_kept_stay_what_they_were(shuffle: bool) -> None:
    rows = np.arange(64 * 40 * 1024, dtype=np.float32).reshape(-1, 1024)
    data = holdfast.data.open(rows, batch=64, shuffle=shuffle, seed=1)
    kept = [batch[::8] for number, batch in enumerate(data) if number % 3 == 0]
    wanted = [
        batch[::8]
        for number, batch in enumerate(holdfast.data.open(rows, batch=64, shuffle=shuffle, seed=1))
        if number % 3 == 0
    ]
    assert all(np.array_equal(one, other) for one, other in zip(kept, wanted, strict=True))
    assert len({float(one[0, 0]) for one in kept}) == len(kept)
