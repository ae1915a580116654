"""Three lines at the end where something happened, and none where nothing did."""

from __future__ import annotations

from holdfast.recorded_events import RecordedAction, RecordedDecision
from holdfast.supervisor.closing_words import LINE_CHARACTERS, Happenings
from holdfast.vocabulary import NOT_WORKING, Cause, Decision, DecisionKind, Diagnosis, Event, Policy

MORE = ["holdfast", "why", "a-run"]
LEAK = "memory of the job grows 2.0 MiB a step"


def decided(kind: DecisionKind, key: str, text: str) -> Event:
    return RecordedDecision.by(Decision(kind, key, text)).event(1.0)


def verdict(outcome: str = "failed", confidence: float = 0.9) -> Diagnosis:
    cause = Cause("killed", "Killed by somebody", confidence, (), ())
    return Diagnosis(outcome, cause, summary=cause.title)


def lines(
    *events: Event, of: Diagnosis | None = None, policy: Policy = Policy.PROTECT, trained: bool = True
) -> list[str]:
    happened = Happenings()
    for event in events:
        happened.take(event)
    return happened.lines(policy, of, trained, MORE)


WARNED = decided(DecisionKind.WARN, "leak", LEAK)
AGAIN = decided(
    DecisionKind.RESTART, "restart:2", "killed by somebody at step 25; starting again from step 20, attempt 2"
)
LAST = decided(DecisionKind.STOP, "restart", "killed by somebody at step 25; not started again: it was enough")


def test_a_run_in_which_nothing_happened_says_nothing() -> None:
    examined = decided(DecisionKind.EXAMINE, "examine", "what grows?")
    about_us = decided(DecisionKind.WARN, f"{NOT_WORKING}checkpoints", "checkpoints are not working here")
    assert lines() == lines(examined, about_us) == []


def test_a_command_that_never_trained_fails_in_its_own_words() -> None:
    assert lines(of=verdict(), trained=False) == []


def test_a_person_who_stopped_it_knows_that() -> None:
    assert lines(of=verdict("stopped")) == []


def test_observe_says_nothing() -> None:
    assert lines(WARNED, AGAIN, policy=Policy.OBSERVE) == []


def test_what_was_noticed_in_a_run_that_finished() -> None:
    again = decided(DecisionKind.WARN, "starved", "training waits for data 80% of the time")
    assert lines(WARNED, WARNED, again, policy=Policy.ADVISE) == [
        f"holdfast: finished; noticed: {LEAK} (and 1 more)",
        "holdfast: nothing was done about it: --policy advise only tells",
        "holdfast: for more: holdfast why a-run",
    ]


def test_what_was_done_for_a_run_that_finished() -> None:
    held = RecordedAction("guard:hold:x", "held the job", "held").event(1.0)
    pieces = Event("rescue.k", 1.0, {"k": 4})
    went_on = Event("numerics.went_on", 1.0, {"step": 3, "text": "left out"})
    what, deeds, _ = lines(AGAIN, AGAIN, pieces, went_on, went_on, held)
    assert what == "holdfast: finished; before that: killed by somebody at step 25"
    assert deeds == (
        "holdfast: started again 2 times; ran steps in 4 micro-batches; went on after 2 bad steps; "
        "held the job while memory was short"
    )
    assert lines(pieces)[0] == "holdfast: finished; its batches did not fit in memory"
    assert lines(went_on)[0] == "holdfast: finished; a step was not finite"
    assert lines(WARNED, pieces)[0] == f"holdfast: finished; its batches did not fit in memory; noticed: {LEAK}"


def test_a_run_that_failed_tells_its_cause_and_why_it_was_left_at_that() -> None:
    what, deeds, _ = lines(AGAIN, LAST, of=verdict(confidence=0.6))
    assert what == "holdfast: Killed by somebody (probably)"
    assert deeds == "holdfast: started again once; not started again: it was enough"
    assert lines(of=Diagnosis("unknown", None, summary="Nobody knows."))[0] == "holdfast: Nobody knows."


def test_a_line_stays_a_line_whatever_stands_in_it() -> None:
    told = lines(decided(DecisionKind.WARN, "x", "a\x1b[2J\nb" + "c" * 1000))
    assert len(told) == 3
    assert told[0].startswith("holdfast: finished; noticed: a [2J bccc") and told[0].endswith("…")
    assert len(told[0]) == LINE_CHARACTERS + len("holdfast: ")
