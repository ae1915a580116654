"""A look inside is asked for on suspicion, a few times a run, with growing pauses."""

from __future__ import annotations

from holdfast.policy import warn
from holdfast.policy.examine import FIRST_WAIT_S, MOST, decide
from holdfast.vocabulary import Evidence, Finding, MemoryGrowth

SUSPICION = Finding(
    "host-memory-leak",
    0.4,
    (Evidence("memory grows", "telemetry"),),
    growth=MemoryGrowth(1024.0, 1 << 20, 1 << 30, 9.0, bounded=False, unexplained=True),
)


def test_it_is_asked_for_once_and_again_after_a_while() -> None:
    (first,) = decide([SUSPICION], "protect", {}, now=100.0)
    assert (first.kind, first.key) == ("examine", "examine:1")
    asked = {first.key: 100.0}
    assert decide([SUSPICION], "protect", asked, now=100.0 + FIRST_WAIT_S - 1) == []
    (second,) = decide([SUSPICION], "advise", asked, now=100.0 + FIRST_WAIT_S)
    asked[second.key] = 100.0 + FIRST_WAIT_S
    assert decide([SUSPICION], "protect", asked, now=100.0 + 2.5 * FIRST_WAIT_S) == []


def test_not_under_observe_and_not_for_ever() -> None:
    assert decide([SUSPICION], "observe", {}, now=0.0) == []
    assert decide([SUSPICION], "protect", {f"examine:{i}": 0.0 for i in range(MOST)}, now=1e9) == []


def test_a_suspicion_is_not_told_to_the_user() -> None:
    assert warn.decide([SUSPICION], "protect", {}, now=0.0) == []
