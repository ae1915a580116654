"""Which rung is next: no more than is needed, and never the last one without a trend that leads to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.policy.memory_ladder import Able, Done, Reading, Rung, decide

GIB = float(1 << 30)
MIB = float(1 << 20)
NOW = 1000.0
PLENTY = Reading("memory", left_bytes=4 * GIB, end_left_bytes=4.2 * GIB, whole_bytes=8 * GIB)


def _near(**what: float | bool) -> Reading:
    near = replace(PLENTY, left_bytes=400 * MIB, end_left_bytes=520 * MIB)
    return replace(near, **what)  # type: ignore[arg-type]


def test_steady_use_is_calm_however_little_is_left() -> None:
    for left in (4 * GIB, 100 * MIB, 0.0, -50 * MIB):
        steady = replace(PLENTY, left_bytes=left, end_left_bytes=left + 60 * MIB)
        assert decide(steady, Done(), Able(), NOW) is Rung.CALM


def test_growth_far_from_the_end_is_calm() -> None:
    assert decide(replace(PLENTY, slow_per_s=200 * MIB, fast_per_s=GIB), Done(), Able(), NOW) is Rung.CALM


def test_a_slow_leak_climbs_rung_by_rung() -> None:
    leak = _near(slow_per_s=25 * MIB)  # 16 s
    assert decide(leak, Done(), Able(), NOW) is Rung.WARN
    done = Done(warned=True)
    assert decide(leak, done, Able(), NOW) is Rung.RELIEVE
    done = replace(done, relief_asked_at=NOW, relief_answered=True)
    assert decide(leak, done, Able(), NOW + 0.1) is Rung.CALM
    later = replace(leak, left_bytes=200 * MIB)  # 8 s
    assert decide(later, done, Able(), NOW + 8) is Rung.CHECKPOINT
    done = replace(done, checkpoint_asked_at=NOW + 8)
    assert decide(later, done, Able(), NOW + 8.1) is Rung.CALM
    done = replace(done, checkpoint_answered_at=NOW + 9, checkpoint_saved_at=NOW + 9)
    over = replace(leak, left_bytes=-20 * MIB, end_left_bytes=100 * MIB, lasting=True, jump_bytes=2 * MIB)
    assert decide(over, done, Able(), NOW + 12) is not Rung.STOP  # the line alone stops nobody
    assert decide(replace(over, end_left_bytes=2 * MIB), done, Able(), NOW + 12) is Rung.STOP


def test_a_checkpoint_is_asked_again_once_the_last_is_old() -> None:
    leak = _near(slow_per_s=60 * MIB)
    done = Done(warned=True, relief_asked_at=NOW, relief_answered=True, checkpoint_asked_at=NOW, checkpoint_answered_at=NOW, checkpoint_saved_at=NOW)  # fmt: skip
    assert decide(leak, done, Able(), NOW + 2) is Rung.CALM
    assert decide(leak, done, Able(), NOW + 5.5) is Rung.CHECKPOINT


def test_a_fast_allocator_is_held_and_stopped_when_the_next_bites_would_not_fit() -> None:
    fast = _near(fast_per_s=6 * GIB, in_a_row=9, bite_bytes=20 * MIB)
    assert decide(fast, Done(), Able(), NOW) is Rung.HOLD
    assert decide(fast, Done(held_s=3.1), Able(), NOW) is Rung.WARN
    over = replace(fast, left_bytes=-1.0, fast_per_s=0.5 * GIB, end_left_bytes=45 * MIB)
    assert decide(over, Done(), Able(), NOW) is Rung.HOLD
    gone = replace(over, end_left_bytes=35 * MIB)
    assert decide(gone, Done(), Able(), NOW) is Rung.STOP
    assert decide(replace(gone, in_a_row=2), Done(), Able(), NOW) is Rung.HOLD  # it may have been the last of it
    assert decide(replace(gone, fresh=False), Done(warned=True), Able(ask=False), NOW) is Rung.CALM  # it breathes


def test_where_the_kernel_has_a_line_around_the_job_alone_it_has_the_last_word() -> None:
    fast = _near(
        left_bytes=-1.0, end_left_bytes=9 * MIB, fast_per_s=6 * GIB, in_a_row=9, bite_bytes=20 * MIB, alone=True
    )
    assert decide(fast, Done(), Able(), NOW) is Rung.HOLD
    leak = replace(fast, fast_per_s=20 * MIB, lasting=True)
    assert decide(leak, Done(held_s=3.1), Able(), NOW) is not Rung.STOP
    assert decide(replace(leak, end_left_bytes=8 * MIB), Done(held_s=3.1), Able(), NOW) is Rung.STOP
    assert decide(replace(leak, helper=True, end_left_bytes=30 * MIB), Done(held_s=3.1), Able(), NOW) is Rung.STOP


def test_kills_by_the_kernel_that_go_on_end_the_job() -> None:
    one = _near(alone=True)
    assert decide(one, Done(kernel_kills=1), Able(), NOW) is Rung.CALM
    assert decide(one, Done(kernel_kills=2), Able(), NOW) is Rung.STOP


def test_one_rank_of_several_is_not_held() -> None:
    fast = _near(fast_per_s=6 * GIB)
    assert decide(fast, Done(warned=True), Able(hold=False, ask=False), NOW) is Rung.CALM
    over = replace(fast, left_bytes=-1.0, end_left_bytes=100 * MIB, in_a_row=4)
    assert decide(over, Done(), Able(hold=False), NOW) is Rung.STOP


def test_the_job_does_not_pay_for_a_neighbour_that_grows() -> None:
    theirs = _near(slow_per_s=100 * MIB, fast_per_s=6 * GIB, ours=False)
    done = Done(warned=True, relief_asked_at=NOW, relief_answered=True)
    assert decide(theirs, done, Able(), NOW + 1) is Rung.CHECKPOINT
    over = replace(theirs, left_bytes=-1.0, end_left_bytes=10 * MIB, in_a_row=9, lasting=True)
    assert decide(over, replace(done, checkpoint_asked_at=NOW + 1), Able(), NOW + 2) not in (Rung.HOLD, Rung.STOP)


def test_a_stall_holds_first_and_stops_only_what_does_not_end() -> None:
    assert decide(replace(PLENTY, stalled_s=0.1), Done(), Able(), NOW) is Rung.CALM
    assert decide(replace(PLENTY, stalled_s=0.5), Done(), Able(), NOW) is Rung.HOLD
    assert decide(replace(PLENTY, stalled_s=3.5), Done(held_s=3.1), Able(), NOW) is Rung.STOP
    waits = Done(held_s=3.1, checkpoint_asked_at=NOW - 1)
    assert decide(replace(PLENTY, stalled_s=3.5), waits, Able(), NOW) is not Rung.STOP
    for more_patience in ({"fresh": False}, {"alone": True}):  # it may pass, or it hurts the job alone
        patient = replace(PLENTY, stalled_s=3.5, **more_patience)
        assert decide(patient, Done(held_s=3.1), Able(), NOW) is not Rung.STOP
        assert decide(replace(patient, stalled_s=60.0), Done(held_s=3.1), Able(), NOW) is Rung.STOP


@pytest.mark.parametrize(
    "reading", [_near(fast_per_s=6 * GIB), _near(slow_per_s=60 * MIB), _near(left_bytes=-1.0, slow_per_s=GIB)]
)
def test_advise_only_warns(reading: Reading) -> None:
    advise = Able(act=False)
    assert decide(reading, Done(), advise, NOW) is Rung.WARN
    assert decide(reading, Done(warned=True), advise, NOW) is Rung.CALM
