"""What happened, in words and in one line each."""

from __future__ import annotations

import pytest

from holdfast.views.timeline import MOST_MOMENTS, WORDS, timeline
from holdfast.vocabulary import Event


def event(kind: str, at: float = 1.0, **data: object) -> Event:
    return Event(kind, at, data)


def told(*events: Event) -> list[tuple[str, str]]:
    return [(moment.weight, moment.text) for moment in timeline(events)]


@pytest.mark.parametrize(
    ("event", "weight", "text"),
    [
        (event("script.exit", code=0), "done", "the script finished"),
        (event("script.exit", code=1), "bad", "the script ended with exit code 1"),
        (event("script.exit", code=137, signal=9), "bad", "the script was ended by SIGKILL"),
        (event("attempt.exit", attempt=1, code=139, signal=11), "bad", "attempt 1 was ended by SIGSEGV"),
        (event("attempt.start", attempt=2, reason="killed"), "warn", "attempt 2 began: killed"),
        (event("checkpoint.restored", step=116), "done", "went on from the checkpoint of step 116"),
        (event("rescue.caught", step=7, wanted="2 GiB"), "warn", "step 7 ran out of memory: 2 GiB"),
        (event("rescue.k", k=4), "done", "batches go on in 4 pieces, with the same effective batch"),
        (event("control.done", do="stop", result="refused: no"), "warn", "stop was asked for: refused: no"),
        (event("gpu.xid", index=0, xid=79), "bad", "GPU 0 reported Xid 79"),
        (event("run.start", command=["a", "--token", "hunter2"]), "note", "started: a --token '***'"),
    ],
)
def test_each_event_has_words_and_a_weight(event: Event, weight: str, text: str) -> None:
    assert told(event) == [(weight, text)]


@pytest.mark.parametrize(
    "event",
    [
        event("numerics.health", step=3),
        event("rescue.k", k=1),
        event("control.done", do="pause", result="paused"),
        event("probe.missing", reason="no GPU", tell=False),
        event("finding", cause="killed"),
    ],
)
def test_what_only_programs_care_about_is_not_told(event: Event) -> None:
    assert told(event) == []


@pytest.mark.parametrize("kind", sorted(WORDS))
def test_an_event_of_another_version_without_its_data_raises_nothing(kind: str) -> None:
    assert all(moment.text for moment in timeline([event("run.end"), event(kind), event("train.begun")]))
    assert timeline([event(kind), event("train.begun")])[-1].text == "training began"


def test_a_decision_and_what_came_of_it_are_one_line() -> None:
    warned = (
        event("decision", decision="warn", key="k", text="memory grows"),
        event("action", key="k", decision="memory grows", result="said"),
    )
    assert told(*warned) == [("warn", "memory grows")]
    ended = (
        event("decision", decision="end", key="h", text="it hangs"),
        event("action", key="h", decision="it hangs", result="ended 12"),
    )
    assert told(*ended) == [("bad", "it hangs"), ("note", "ended 12")]


def test_a_restart_is_told_once_with_its_reason() -> None:
    why = "killed at step 60; starting again, attempt 2"
    assert told(
        event("decision", decision="restart", key="restart", text=why),
        event("attempt.start", attempt=2, reason=why),
        event("action", key="restart", decision=why, result="started as attempt 2"),
    ) == [("warn", why), ("note", "attempt 2 began")]


def test_the_guard_acts_without_a_decision() -> None:
    assert told(event("action", key="guard:hold", decision="held the job", result="held")) == [("warn", "held the job")]


def test_checkpoints_in_a_row_are_one_line_with_their_number() -> None:
    saved = [event("checkpoint.saved", at, number=int(at), step=int(at) * 10) for at in (1.0, 2.0, 3.0)]
    moments = timeline([*saved, event("train.begun", 4.0), event("checkpoint.saved", 5.0, number=4, step=99)])
    assert [(moment.times, moment.text) for moment in moments] == [
        (3, "checkpoint 3 saved, of step 30"),
        (1, "training began"),
        (1, "checkpoint 4 saved, of step 99"),
    ]


def test_text_from_a_run_is_one_line_that_moves_no_cursor() -> None:
    assert told(event("kernel.line", text="\x1b[2Jpanic\nnext")) == [("warn", "kernel: ·[2Jpanic next")]


def test_only_the_latest_are_kept() -> None:
    many = [event("signal.received", float(at), signal=10 if at % 2 else 12) for at in range(MOST_MOMENTS + 5)]
    assert len(timeline(many)) == MOST_MOMENTS
    assert timeline(many)[0].at == 5.0
