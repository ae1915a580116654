"""Memory over batch size: through measurements, and beyond them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.inside.plan.memory_curve import Curve

MIB = 1 << 20


def test_between_two_measurements_the_straight_line_counts() -> None:
    curve = Curve([16, 32, 64], [100 * MIB, 140 * MIB, 240 * MIB])
    assert curve.at(32) == 140 * MIB
    assert curve.at(48) == 190 * MIB


def test_beyond_the_last_one_the_slope_of_its_upper_half_counts() -> None:
    """glibc's heap gives way to mappings: what the first sizes had a row says little of the last ones."""
    curve = Curve([16, 32, 64, 128], [200 * MIB, 280 * MIB, 440 * MIB, 504 * MIB])
    assert curve.at(256) == 504 * MIB + 128 * MIB


def test_a_row_never_takes_less_than_it_saves_for_the_backward_pass() -> None:
    assert Curve([32, 64], [300 * MIB, 300 * MIB], least_a_row=MIB).at(164) == 400 * MIB


def test_one_measurement_is_taken_apart_into_what_is_fixed_and_what_grows() -> None:
    curve = Curve([64], [300 * MIB], fixed=100 * MIB)
    assert curve.at(128) == 500 * MIB
    assert curve.at(32) == 200 * MIB


def test_a_lower_reading_at_more_rows_is_luck() -> None:
    assert Curve([8, 16], [300 * MIB, 250 * MIB]).at(16) == 300 * MIB


@pytest.mark.parametrize(("room", "rows"), [(99, 0), (150, 1), (150.5, 1), (1000, 18), (10**6, 19998)])
def test_the_most_rows_that_fit_a_room(room: float, rows: int) -> None:
    """100 and 50 a row."""
    assert Curve([1, 2, 4], [150, 200, 300]).rows_within(room) == rows


@given(
    st.lists(st.integers(1, 10_000), min_size=1, max_size=6, unique=True),
    st.integers(0, 1 << 30), st.integers(64, 1 << 20), st.integers(0, 1 << 34),
)  # fmt: skip
def test_what_fits_does_and_one_row_more_does_not(sizes: list[int], fixed: int, a_row: int, room: int) -> None:
    curve = Curve(sizes, [fixed + a_row * rows for rows in sizes], fixed)
    fit = curve.rows_within(room)
    assert (curve.at(fit) if fit else 0) <= room
    assert curve.at(fit + 1) > room


def test_up_to_the_bend_it_goes_on_as_before_and_beyond_it_less_may_do() -> None:
    """Blocks that outgrow glibc's heap go back when they are freed."""
    curve = Curve([64, 128, 256, 512], [200, 264, 392, 300], bend=400)
    assert curve.at(384) == 392 + 128
    assert curve.at(512) == 300
    assert curve.rows_within(450) < 400
    assert Curve([64, 128, 256, 512], [200, 264, 392, 300]).at(512) == 392
