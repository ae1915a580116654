"""A trend is what goes on: not a jump, not a fill that levels off, not a saw."""

from __future__ import annotations

import random

import pytest

from holdfast.detectors.trend import Point, growth

MIB = float(1 << 20)
# Step and MiB of a cache of 1200 images on a slow machine: full after 90 steps, and then the heap creeps on. Measured.
CREEPING = (
    (11, 272), (16, 296), (21, 320), (26, 344), (31, 367), (39, 405), (49, 452), (57, 489), (66, 532), (76, 578), (81, 594), (91, 628),
    (100, 631), (107, 631), (116, 632), (128, 633), (138, 634), (150, 635), (159, 635), (169, 635), (179, 641), (189, 641), (201, 641),
    (214, 644), (225, 650), (235, 661), (245, 673), (249, 678),
)  # fmt: skip


def course(levels: list[float], epoch_of: int = 1000, every: int = 5, second: float = 0.25) -> list[Point]:
    """Levels in MiB, one each `every` steps; an epoch has `epoch_of` steps."""
    return [
        Point(20 + i * every, 500 * MIB + mib * MIB, i * second, i * every // epoch_of) for i, mib in enumerate(levels)
    ]


def test_steady_growth_is_found_with_its_slope() -> None:
    found = growth(course([10.0 * i for i in range(20)]))
    assert found is not None
    assert found.per_step == pytest.approx(2 * MIB)
    assert not found.survived


def test_it_is_found_within_the_noise_of_an_allocator() -> None:
    noise = random.Random(4)
    assert growth(course([8.0 * i + noise.uniform(-6, 6) for i in range(30)])) is not None


@pytest.mark.parametrize(
    "levels",
    [
        [0.0] * 40,
        [0.0] * 10 + [400.0] * 20,  # one large result
        [min(10.0 * i, 200.0) for i in range(60)],  # a cache that is full
        [100 * (1 - 0.7**i) for i in range(30)],  # warming up
        [10.0 * (i % 10) for i in range(60)],  # collected and dropped
        [1.0 * i for i in range(20)],  # too little to speak of
        [10.0 * i for i in range(6)],  # too few to tell
    ],
)
def test_healthy_courses_are_no_trend(levels: list[float]) -> None:
    assert growth(course(levels)) is None


def test_a_leak_that_begins_later_is_found() -> None:
    assert growth(course([0.0] * 60 + [10.0 * i for i in range(40)])) is not None


def test_growth_that_goes_on_in_the_next_epoch_has_survived() -> None:
    found = growth(course([10.0 * i for i in range(40)], epoch_of=100))
    assert found is not None and found.survived


def test_a_cache_that_fills_in_the_first_epoch_has_not() -> None:
    courses = (
        course([min(10.0 * i, 200.0) + (i % 3) for i in range(length)], epoch_of=100) for length in range(20, 60)
    )
    found = list(filter(None, map(growth, courses)))
    assert len(found) >= 5, "while it fills it is a trend"
    assert not any(one.survived for one in found)


def test_what_is_dropped_at_the_end_of_an_epoch_has_not() -> None:
    courses = (course([10.0 * (i % 20) for i in range(length)], epoch_of=100) for length in range(8, 80))
    found = list(filter(None, map(growth, courses)))
    assert len(found) >= 30, "until it is dropped it is a trend"
    assert not any(one.survived for one in found)


def test_a_cache_that_is_full_and_a_heap_that_creeps_on_are_no_trend_over_all_of_it() -> None:
    found = growth([Point(step, mib * MIB, step * 0.1, None) for step, mib in CREEPING])
    assert found is not None and found.first.step > 90, "only after it was full"
    assert found.amount < 64 * MIB
