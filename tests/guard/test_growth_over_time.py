"""Courses of memory through the guard's own turns, with clock and kernel made up.

A healthy course never ends in a stop, whatever its size, speed and shape; one that has no end is held in time, and
stopped before the kernel would kill, wherever that kill could hit another.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.guard.world import GIB, MIB, GrowthRate, World

SETTINGS = settings(max_examples=15, deadline=None, derandomize=True)
WHOLES = st.sampled_from([0.4, 2.0, 8.0, 64.0]).map(lambda gib: gib * GIB)
SPEEDS = st.floats(0.02, 3.0).map(lambda gib: gib * GIB)
PLACES = st.sampled_from([{"alone": True}, {"alone": True, "machine": True}, {"alone": False}, {"alone": False, "machine": True}])  # fmt: skip


def _highest(whole: float, speed: float, share: float, place: dict[str, bool]) -> float:
    """Up to there it is healthy: 99.5 % where the kernel has the last word; else what a slice and a look need is left."""
    world = World(lambda _: 0.0, whole, **place)
    needed = 2 * MIB if place["alone"] else 0.05 * speed + 4 * MIB
    return min(share * world.end, world.end - needed)


def _loads_and_levels_off(top: float, speed: float) -> GrowthRate:
    begin = max(0.1 * top, top - 4.0 * speed)
    return lambda at: min(top, begin + max(0.0, at - 1.0) * speed)


def _breathes(top: float, depth: float, speed: float, rest_s: float) -> GrowthRate:
    base = top * (1 - depth)
    up_s = (top - base) / speed
    period = 2 * up_s + 2 * rest_s

    def level(at: float) -> float:
        phase = at % period
        if phase < rest_s:
            return base
        if phase < rest_s + up_s:
            return base + (phase - rest_s) * speed
        if phase < 2 * rest_s + up_s:
            return top
        return max(base, top - (phase - 2 * rest_s - up_s) * speed)

    return level


def _steps(top: float, count: int, every_s: float, speed: float) -> GrowthRate:
    size = top / count
    speed = max(speed, size / every_s)

    def level(at: float) -> float:
        whole, rest_s = divmod(max(0.0, at - 1.0), every_s)
        return min(top, whole * size + min(size, rest_s * speed))

    return level


@pytest.mark.parametrize("loaded", [False, True])
@SETTINGS
@given(WHOLES, SPEEDS, st.floats(0.95, 0.995), PLACES)
def test_what_loads_and_then_sits_near_the_end_is_not_stopped(
    loaded: bool, whole: float, speed: float, share: float, place: dict[str, bool]
) -> None:
    top = _highest(whole, speed, share, place)
    world = World(_loads_and_levels_off(top, speed), whole, loaded=loaded, **place)
    world.live(8.0)
    assert not world.stopped and not world.killed


@pytest.mark.parametrize("loaded", [False, True])
@SETTINGS
@given(whole=WHOLES, speed=SPEEDS, share=st.floats(0.9, 0.995), depth=st.floats(0.005, 0.9), rest_s=st.floats(0.0, 0.5), place=PLACES)  # fmt: skip
def test_what_breathes_below_its_end_is_not_stopped_however_deep_and_fast(
    *, loaded: bool, whole: float, speed: float, share: float, depth: float, rest_s: float, place: dict[str, bool]
) -> None:
    course = _breathes(_highest(whole, speed, share, place), depth, speed, rest_s + 0.001)
    world = World(course, whole, loaded=loaded, **place)
    world.live(8.0)
    assert not world.stopped and not world.killed


@pytest.mark.parametrize("loaded", [False, True])
@SETTINGS
@given(whole=WHOLES, speed=SPEEDS, share=st.floats(0.9, 0.995), count=st.integers(2, 40), every_s=st.floats(0.05, 1.0), place=PLACES)  # fmt: skip
def test_what_warms_up_in_steps_and_levels_off_is_not_stopped(
    *, loaded: bool, whole: float, speed: float, share: float, count: int, every_s: float, place: dict[str, bool]
) -> None:
    top = _highest(whole, max(speed, whole / count / every_s), share, place)
    world = World(_steps(top, count, every_s, speed), whole, loaded=loaded, **place)
    world.live(3.0 + count * every_s)
    assert not world.stopped and not world.killed


@SETTINGS
@given(WHOLES, SPEEDS, st.floats(0.0, 0.3), PLACES)
def test_the_job_is_not_stopped_for_what_a_neighbour_takes(
    whole: float, speed: float, depth: float, place: dict[str, bool]
) -> None:
    course = _breathes(0.5 * whole, depth, 3 * GIB, 0.001) if depth > 0.01 else lambda _: 0.5 * whole
    world = World(course, whole, others=lambda s: min(0.5 * whole, max(0.0, s - 1.0) * speed), **place)
    world.live(3.0 + min(10.0, 0.5 * whole / speed))
    assert not world.stopped


@pytest.mark.parametrize("hold", [True, False], ids=["held", "one rank of several"])
@SETTINGS
@given(WHOLES.filter(lambda whole: whole > GIB), st.floats(0.3, 3.0).map(lambda gib: gib * GIB), st.booleans())
def test_a_hog_is_stopped_by_us_where_the_kernel_might_hit_another(
    hold: bool, whole: float, speed: float, machine: bool
) -> None:
    world = World(lambda at: 0.1 * whole + at * speed, whole, alone=False, machine=machine, hold=hold)
    world.live(60.0 + whole / speed)
    assert world.stopped and not world.killed
    assert world.level > 0.9 * world.end  # and no sooner than it had to be
    assert ("guard.held" in world.kinds) == hold


@SETTINGS
@given(WHOLES.filter(lambda whole: whole > GIB), st.floats(0.3, 3.0).map(lambda gib: gib * GIB), st.booleans())
def test_a_hog_with_a_line_of_its_own_is_held_before_it_and_the_kernel_has_the_last_word(
    whole: float, speed: float, machine: bool
) -> None:
    world = World(lambda at: 0.1 * whole + at * speed, whole, alone=True, machine=machine)
    world.live(60.0 + whole / speed)
    assert world.stopped + world.killed == 1
    held = next(packet for packet in world.told if packet["kind"] == "guard.held")
    assert held["left_bytes"] > 0 and held["reacted_ms"] <= 100


def _leaks(end: float, per_s: float, chunk: float, breath: float = 0.0) -> GrowthRate:
    """Begins a few seconds before its end: nine where it drips, two where it pours."""
    begin = end - breath - (9 if per_s < 20 * MIB else 2) * per_s
    return lambda at: begin + breath * (int(at * 7) % 2) + int(at * per_s / chunk) * chunk


RATES = st.floats(3.0, 150.0).map(lambda mib: mib * MIB)
SMALL = WHOLES.filter(lambda whole: whole < 10 * GIB)
CHUNKS = st.floats(0.1, 1.0).map(lambda mib: mib * MIB)


@pytest.mark.parametrize("loaded", [False, True])
@SETTINGS
@given(whole=SMALL, per_s=RATES, chunk=CHUNKS, machine=st.booleans(), breath=st.sampled_from([0.0, 0.02]))
def test_a_leak_is_stopped_before_the_end(
    *, loaded: bool, whole: float, per_s: float, chunk: float, machine: bool, breath: float
) -> None:
    end = World(lambda _: 0.0, whole, alone=False, machine=machine).end
    world = World(_leaks(end, per_s, chunk, breath * whole), whole, alone=False, machine=machine, loaded=loaded)
    world.live(15.0)
    assert world.stopped and not world.killed
    if not breath:
        assert "guard.warn" in world.kinds


@SETTINGS
@given(SMALL, RATES, CHUNKS)
def test_a_leak_with_a_line_of_its_own_is_stopped_in_the_very_last_of_it(
    whole: float, per_s: float, chunk: float
) -> None:
    end = World(lambda _: 0.0, whole, alone=True).end
    world = World(_leaks(end, per_s, chunk), whole, alone=True)
    world.live(15.0)
    assert world.stopped and not world.killed
    assert world.end - world.level <= max(2 * MIB, 0.001 * whole)
