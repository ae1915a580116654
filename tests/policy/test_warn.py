"""The user is told once, and again only after a while."""

from __future__ import annotations

from holdfast.policy.warn import AGAIN_S, decide
from holdfast.vocabulary import Evidence, Finding

FILLING = Finding("disk-full", 0.6, (Evidence("disk /: full in about 9 s", "telemetry"),), subject="/")


def test_a_finding_is_said_once_and_again_after_ten_minutes() -> None:
    (first,) = decide([FILLING], "protect", {}, now=100.0)
    assert (first.kind, first.text) == ("warn", "disk /: full in about 9 s")
    said = {first.key: 100.0}
    assert decide([FILLING], "protect", said, now=100.0 + AGAIN_S - 1) == []
    assert len(decide([FILLING], "protect", said, now=100.0 + AGAIN_S)) == 1


def test_observe_only_notes() -> None:
    assert [decision.kind for decision in decide([FILLING], "observe", {}, now=0.0)] == ["note"]
