"""A run that was ended while it stood still was ended for that, by whomever, and however long it took."""

from __future__ import annotations

import pytest

from holdfast.detectors import hang
from holdfast.recorded_events import Exit
from holdfast.vocabulary import Event
from tests.detectors.test_hang import window

ENDINGS = {
    "ended while it stood still": (Exit(143, 15).event(106.0), 80.0, "deadlock"),
    "ended long after it went on": (Exit(143, 15).event(400.0), 80.0, None),
    "took a step before it ended": (Exit(1).event(106.0), 105.0, None),
    "finished by itself": (Exit(0).event(106.0), 80.0, None),
}


def test_a_step_that_a_signal_let_finish_is_no_sign_of_life() -> None:
    signal = Event("signal.received", 104.5, {"signal": 15})
    found = hang.find_ending(window(30.0, signal, Exit(1).event(107.0), steps_at=105.0))
    assert found is not None and found.cause == "deadlock"


def test_a_job_that_hangs_may_take_minutes_to_end_once_it_was_asked() -> None:
    signal = Event("signal.received", 104.5, {"signal": 15})
    found = hang.find_ending(window(30.0, signal, Exit(137, 9).event(400.0)))
    assert found is not None and found.cause == "deadlock"
    assert hang.find_ending(window(30.0, signal, Exit(1).event(400.0), steps_at=390.0)) is None


@pytest.mark.parametrize("name", ENDINGS)
def test_a_run_that_was_ended_while_it_stood_still_was_ended_for_that(name: str) -> None:
    ended, steps_at, cause = ENDINGS[name]
    found = hang.find_ending(window(30.0, ended, steps_at=steps_at))
    assert (found.cause if found is not None else None) == cause
