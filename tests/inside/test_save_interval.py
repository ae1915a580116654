from __future__ import annotations

from holdfast.inside.save_interval import LATEST_S, SOON_S, Pace


def test_the_first_save_comes_soon() -> None:
    assert Pace(None).began(100.0) == 100.0 + SOON_S


def test_a_pause_takes_under_one_percent() -> None:
    pace = Pace(None)
    pace.began(0.0)
    assert pace.saved(3.0, 0.5, 0.0) - 3.0 > 50.0


def test_the_interval_grows_with_the_run_and_stays_under_five_minutes() -> None:
    pace = Pace(None)
    pace.began(0.0)
    intervals = [pace.saved(moment, 0.001, 0.05) - moment for moment in (3.0, 600.0, 3600.0, 86400.0)]
    assert intervals == sorted(intervals)
    assert intervals[0] == SOON_S
    assert intervals[-1] == LATEST_S


def test_one_slow_save_is_forgotten_in_time() -> None:
    pace = Pace(None)
    pace.began(0.0)
    slow = pace.saved(3.0, 2.0, 0.0) - 3.0
    for _ in range(60):
        last = pace.saved(3.0, 0.001, 0.0) - 3.0
    assert last < slow / 10


def test_seconds_that_were_asked_for_are_kept_to() -> None:
    pace = Pace(30.0)
    assert pace.began(0.0) == 30.0
    assert pace.saved(30.0, 5.0, 5.0) == 60.0
