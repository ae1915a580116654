"""What of Holdfast does not work in a run is told once, with the reason."""

from __future__ import annotations

import pytest

from holdfast.inside import never_raise
from holdfast.policy import not_working
from holdfast.policy.not_working import decide
from holdfast.vocabulary import Event


def _event(kind: str, **data: object) -> Event:
    return Event(kind, 1.0, {"pid": 7, **data})


FAILED = _event("checkpoint.failed", reason="AttributeError: 'numpy.float32' object has no attribute 'numpy'")
KINDS = {
    "Holdfast cannot keep checkpoints or go on from them here: Variable._value is not in Keras 3.99 (known: 3.3 to 3.15); t": (
        _event(
            "capabilities",
            framework="keras",
            telemetry="yes",
            checkpoint="no: Variable._value is not in Keras 3.99 (known: 3.3 to 3.15)",
            resume="no: another name is not in Keras 3.99",
            rescue="off",
        )
    ),
    "Holdfast cannot keep checkpoints, survive running out of memory or trace NaN here: all is one function; t": _event(
        "step.not_seen", reason="all is one function", loss=True
    ),
    "checkpoints are not working here: AttributeError: 'numpy.float32' object has no attribute 'numpy'": FAILED,
    "a part of Holdfast failed in the training process: Fit.began: KeyError: 'x'": _event(
        "inside.failed", place="Fit.began", reason="KeyError: 'x'"
    ),
    "Holdfast no longer looks into the training process: its hooks failed 20 times": _event(
        "inside.failed", place=never_raise.EVERYTHING, reason="its hooks failed 20 times and are switched off"
    ),
    "the GPU memory budget is not held: TensorFlow had taken the card before": _event(
        "memory.budget_not_held", where="gpu", reason="TensorFlow had taken the card before"
    ),
    "evaluation: a batch that does not fit in memory is not run in smaller pieces: a loss over": _event(
        "rescue.refused", where="evaluate", reason="a loss over the whole batch"
    ),
}


@pytest.mark.parametrize(("line", "event"), KINDS.items())
def test_each_is_one_line_with_its_reason(line: str, event: Event) -> None:
    (decision,) = decide([event], "protect", {})
    assert decision.kind == "warn" and "\n" not in decision.text
    assert line in decision.text


def test_numbers_that_are_not_looked_at_are_in_the_record_only() -> None:
    (decision,) = decide(
        [_event("numerics.off", reason="there is no room for a second copy of the weights")], "protect", {}
    )
    assert decision.kind == "note" and "not looked for here: there is no room for a second copy" in decision.text


def test_the_second_time_nothing_is_said() -> None:
    (first,) = decide([FAILED, FAILED], "protect", {})
    assert decide([FAILED], "protect", {first.key: 1.0}) == []


def test_what_two_frameworks_lose_alike_is_said_once() -> None:
    lost = {"telemetry": "yes", "checkpoint": "no: a", "resume": "no: b", "rescue": "yes"}
    both = [_event("capabilities", framework=framework, **lost) for framework in ("tensorflow", "keras")]
    less = _event("capabilities", framework="keras", **{**lost, "rescue": "no: c"})
    assert len(decide(both, "protect", {})) == 1
    assert len(decide([both[0], less], "protect", {})) == 2


def test_observe_says_nothing() -> None:
    assert [decision.kind for decision in decide([FAILED], "observe", {})] == ["note"]


def test_training_and_evaluation_are_two_matters() -> None:
    both = [_event("rescue.refused", where=where, reason="r") for where in ("train", "evaluate", "train")]
    assert len(decide(both, "protect", {})) == 2


def test_what_works_is_no_matter() -> None:
    able = _event("capabilities", framework="keras", telemetry="yes", checkpoint="off", resume="off", rescue="yes")
    healthy = [able, _event("checkpoint.saved", step=3), _event("rescue.k", k=2), _event("memory.budget", where="gpu")]
    elsewhere = _event("checkpoint.failed", reason=not_working.SAVED_ELSEWHERE)
    assert decide([*healthy, elsewhere], "protect", {}) == []


def test_a_reason_of_many_lines_and_escapes_is_one_short_line() -> None:
    (decision,) = decide([_event("checkpoint.failed", reason="bad\n\x1b[2J" + "x" * 500)], "protect", {})
    assert decision.text.isprintable() and len(decision.text) < 350
