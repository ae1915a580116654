"""Which batch is measured next. The machine here is a function from rows to bytes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.inside.plan.memory_curve import Point
from holdfast.inside.plan.sizes import MOST_ROUNDS, Sizes

MIB = 1 << 20


def tried(sizes: Sizes, needed: Callable[[int], int], seconds_a_row: float = 1e-6) -> list[int]:
    rows: int | None = sizes.first()
    spent = 0.0
    while rows is not None:
        sizes.points.append(Point(rows, needed(rows), rows * seconds_a_row))
        spent += 3 * rows * seconds_a_row
        rows = sizes.next(spent)
    return [point.rows for point in sizes.points]


def line(fixed_mib: int, row_mib: float) -> Callable[[int], int]:
    return lambda rows: int((fixed_mib + row_mib * rows) * MIB)


def test_it_goes_up_from_a_part_of_the_scripts_own_batch_to_well_beyond_it() -> None:
    assert tried(Sizes(64, None, None, 10.0), line(200, 1.0))[:4] == [16, 32, 64, 128]
    assert tried(Sizes(64, None, None, 10.0), line(200, 1.0))[-1] == 64 * 64


def test_what_is_asked_for_is_among_them() -> None:
    assert 100 in tried(Sizes(64, 100, None, 10.0), line(200, 1.0))


@given(st.integers(1, 512), st.integers(50, 400), st.floats(0.01, 50.0), st.integers(450, 20_000))
def test_nothing_is_run_that_does_not_fit(own: int, fixed: int, row: float, room: int) -> None:
    """But for the first, of which nothing is known."""
    needed = line(fixed, row)
    found = tried(Sizes(own, None, room * MIB, 10.0), needed)
    assert [rows for rows in found[1:] if needed(rows) > room * MIB] == []


@given(st.floats(0.5, 3.0), st.integers(8, 256))
def test_nor_where_memory_grows_faster_than_a_line(power: float, own: int) -> None:
    def needed(rows: int) -> int:
        return int((200 + rows ** min(power, 1.2)) * MIB)

    found = tried(Sizes(own, None, 4096 * MIB, 10.0), needed)
    assert [rows for rows in found[1:] if needed(rows) > 4096 * MIB] == []


def test_a_limit_that_is_asked_about_is_approached_and_passed_once() -> None:
    """So the largest batch that fits lies between two that were measured."""
    found = tried(Sizes(16, None, 16384 * MIB, 10.0, limit_bytes=1000 * MIB), line(200, 1.0))
    assert found[-1] > 800 >= found[-2]
    assert found[-1] < 1100


def test_a_slow_step_is_not_run_in_sizes_that_nobody_asked_for() -> None:
    assert tried(Sizes(64, None, None, 10.0), line(200, 1.0), seconds_a_row=0.01) == [16, 32, 64, 128]


def test_normalisation_over_a_batch_refuses_a_single_row() -> None:
    assert [Sizes(own, None, None, 10.0).first() for own in (1, 2, 3, 7, 8, 100)] == [1, 2, 2, 2, 2, 25]


@pytest.mark.parametrize(
    ("peaks", "done"),
    [
        ([100], False),
        ([100, 120], False),
        ([100, 120, 120], True),
        ([100, 120, 140], False),
        ([1, 2, 3, 4, 5, 6], True),
    ],
)
def test_a_size_is_run_until_the_allocator_asks_for_nothing_new(peaks: list[int], done: bool) -> None:
    assert Sizes(64, None, None, 10.0).rounds_done(peaks, 0.01) is done
    assert len(peaks) <= MOST_ROUNDS


def test_a_card_that_has_no_room_ends_it_though_the_machine_has() -> None:
    sizes = Sizes(64, None, None, 10.0, card_room_bytes=1000 * MIB)
    rows: int | None = sizes.first()
    while rows is not None:
        sizes.points.append(Point(rows, 500 * MIB, 1e-5, (100 + 5 * rows) * MIB))
        rows = sizes.next(0.0)
    assert 100 < sizes.points[-1].rows <= (1000 - 100) / 5
