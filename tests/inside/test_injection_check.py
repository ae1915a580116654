"""A Python that our part cannot get into is mentioned once, and only after it had time to say hello."""

from __future__ import annotations

from holdfast.supervisor.injection_check import PATIENCE_S, InjectionCheck
from holdfast.vocabulary import Event

SEEN = [Event("framework", 0.0, {"name": "torch", "pid": 7})]


def test_silence_is_mentioned_once() -> None:
    greeting = InjectionCheck()
    assert greeting.missing(SEEN, set(), 0.0) is None
    assert greeting.missing([], set(), PATIENCE_S - 1) is None
    line = greeting.missing([], set(), PATIENCE_S + 1)
    assert line is not None and line.startswith("torch runs in a Python that does not load")
    assert greeting.missing([], set(), PATIENCE_S + 2) is None


def test_a_hello_in_time_and_a_job_without_a_framework_need_no_mention() -> None:
    greeted, plain = InjectionCheck(), InjectionCheck()
    greeted.missing(SEEN, set(), 0.0)
    assert greeted.missing([], {7}, PATIENCE_S + 1) is None
    assert plain.missing([], set(), 1e9) is None
