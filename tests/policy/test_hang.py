"""A job that stands still is ended only when that is proven or has lasted."""

from __future__ import annotations

import pytest

from holdfast.policy.hang import decide
from holdfast.vocabulary import DecisionKind, Evidence, Finding, Policy, Standstill


def ended(silent_s: float, proven: bool, trained: bool = True, policy: Policy = Policy.PROTECT, *known: str) -> bool:
    finding = Finding(
        "deadlock",
        0.9,
        (Evidence("it stands", "stacks"),),
        headline="It stands",
        standstill=Standstill(silent_s, proven, trained),
    )
    decisions = decide([finding], policy, dict.fromkeys(known, 1.0), timeout_s=300.0)
    return [decision.kind for decision in decisions] == [DecisionKind.END]


@pytest.mark.parametrize(
    ("silent_s", "proven", "expected"),
    [(24.0, True, True), (24.0, False, False), (299.0, False, False), (301.0, False, True)],
)
def test_what_is_proven_is_ended_and_the_rest_when_it_has_lasted(silent_s: float, proven: bool, expected: bool) -> None:
    assert ended(silent_s, proven) == expected


def test_only_a_job_that_trained_only_with_protect_and_only_once() -> None:
    assert not ended(900.0, True, trained=False)
    assert not ended(900.0, True, True, Policy.ADVISE)
    assert not ended(900.0, True, True, Policy.PROTECT, "hang:deadlock")
    assert decide([Finding("deadlock", 0.9, (Evidence("x", "stderr"),))], Policy.PROTECT, {}) == []
