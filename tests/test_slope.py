from __future__ import annotations

import pytest

from holdfast.slope import slope


def test_a_straight_course_has_its_own_slope() -> None:
    assert slope([(float(x), 3.0 * x - 7) for x in range(9)]) == pytest.approx(3.0)


def test_one_jump_among_many_points_does_not_make_a_trend() -> None:
    assert slope([(float(x), 100.0 if x >= 7 else 0.0) for x in range(8)]) == 0.0


def test_points_at_one_place_say_nothing() -> None:
    assert slope([(1.0, 2.0), (1.0, 9.0)]) is None and slope([]) is None
