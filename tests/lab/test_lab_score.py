import json
from collections.abc import Callable
from typing import Any

import pytest

from lab import score
from lab.case import Case
from lab.program import Ran

MakeCase = Callable[..., Case]


def answer(cause: str | None, outcome: str = "failed", confidence: float = 0.9, *evidence: str) -> dict[str, Any]:
    named = {"id": cause, "confidence": confidence, "evidence": [{"text": text} for text in evidence]}
    return {"outcome": outcome, "cause": named if cause else None}


def ran(said: dict[str, Any] | None, exit_code: int | None = 1, stdout: str = "hello", stderr: str = "") -> Ran:
    return Ran(exit_code, 1.5, stdout, stderr, said)


def test_the_labelled_cause_is_right(make_case: MakeCase) -> None:
    result = score.judge(make_case(), ran(answer("unhandled-exception")), healthy=False)
    assert (result.verdict, result.got, result.confidence, result.note) == ("right", "unhandled-exception", 0.9, "")


def test_no_cause_where_there_is_one_is_cannot_tell_and_not_wrong(make_case: MakeCase) -> None:
    result = score.judge(make_case(), ran(answer(None)), healthy=False)
    assert (result.verdict, result.confidently_wrong) == ("cannot tell", False)


def test_another_cause_is_wrong_and_with_confidence_it_is_the_worst(make_case: MakeCase) -> None:
    case = make_case()
    sure, unsure = (score.judge(case, ran(answer("killed", confidence=c)), healthy=False) for c in (0.8, 0.5))
    assert (sure.verdict, sure.confidently_wrong) == ("wrong", True)
    assert (unsure.verdict, unsure.confidently_wrong) == ("wrong", False)


def test_naming_a_cause_where_nobody_can_tell_is_wrong(make_case: MakeCase) -> None:
    case = make_case(cause='cause = "none"')
    assert score.judge(case, ran(answer(None)), healthy=False).verdict == "right"
    assert score.judge(case, ran(answer("killed")), healthy=False).confidently_wrong


@pytest.mark.parametrize(
    ("program", "note"),
    [
        (ran(answer("unhandled-exception"), exit_code=2), "exit code 2, not 1"),
        (ran(answer("unhandled-exception", "stopped")), "outcome stopped, not failed"),
        (ran(answer("unhandled-exception"), stdout=""), "the script's 'hello' did not come through"),
        (Ran(None, 90.0, "hello", "", None, "still running after 90 s"), "still running after 90 s"),
    ],
)
def test_the_right_cause_is_not_enough(make_case: MakeCase, program: Ran, note: str) -> None:
    result = score.judge(make_case(), program, healthy=False)
    assert (result.verdict, result.note, result.confidently_wrong) == ("wrong", note, False)


@pytest.mark.parametrize("text", ["KeyError at train.py:2", 'KeyError, File "/a/train.py", line 2, in main'])
def test_evidence_may_name_the_line_in_either_way(make_case: MakeCase, text: str) -> None:
    case = make_case(train="x = {}\nx['a']\n", more='[evidence]\ncontains = ["KeyError"]\nline = "x[\'a\']"')
    result = score.judge(case, ran(answer("unhandled-exception", "failed", 0.9, text)), healthy=False)
    assert result.verdict == "right"


def test_missing_evidence_is_named(make_case: MakeCase) -> None:
    case = make_case(train="x = {}\nx['a']\n", more='[evidence]\ncontains = ["KeyError"]\nline = "x[\'a\']"')
    result = score.judge(case, ran(answer("unhandled-exception", "failed", 0.9, "train.py:21")), healthy=False)
    assert result.verdict == "wrong"
    assert result.note == "no evidence line has 'KeyError'; no evidence line has 'train.py:2'"


def test_a_healthy_program_is_left_in_peace(make_case: MakeCase) -> None:
    result = score.judge(make_case(), ran(answer(None, "completed"), exit_code=0), healthy=True)
    assert (result.verdict, result.expected) == ("right", "none")


@pytest.mark.parametrize(
    "program",
    [
        ran(answer("killed", "completed"), exit_code=0),
        ran(answer(None, "completed"), exit_code=0, stderr="a\nholdfast: memory is getting short\n"),
    ],
)
def test_a_cause_or_a_warning_on_a_healthy_program_is_a_false_alarm(make_case: MakeCase, program: Ran) -> None:
    assert score.judge(make_case(), program, healthy=True).verdict == "false alarm"


def test_a_healthy_program_that_breaks_is_wrong_and_no_false_alarm(make_case: MakeCase) -> None:
    case = make_case()
    assert score.judge(case, ran(answer(None, "failed"), exit_code=1), healthy=True).verdict == "wrong"
    assert score.judge(case, ran(None, exit_code=0), healthy=True).verdict == "wrong"


def test_bare_looks_at_the_exit_code(make_case: MakeCase) -> None:
    case = make_case()
    assert score.judge_bare(case, ran(None, exit_code=1), healthy=False).verdict == "right"
    assert score.judge_bare(case, ran(None, exit_code=1), healthy=True).verdict == "wrong"
    assert score.judge_bare(case, ran(None, exit_code=None), healthy=False).got == "timeout"


def test_totals_and_table(make_case: MakeCase) -> None:
    case = make_case()
    results = [
        score.judge(case, ran(answer("unhandled-exception")), healthy=False),
        score.judge(case, ran(answer("killed", confidence=0.95)), healthy=False),
        score.judge(case, ran(answer(None)), healthy=False),
        score.judge(case, ran(answer(None, "completed"), exit_code=0), healthy=True),
        score.judge(case, ran(answer("killed", "completed"), exit_code=0), healthy=True),
        score.not_staged(case, "no memory cgroup can be made here", healthy=False),
    ]
    counted = score.totals(results)
    assert (counted.right, counted.wrong, counted.cannot_tell, counted.confidently_wrong) == (1, 1, 1, 1)
    assert (counted.false_alarms, counted.healthy, counted.healthy_right, counted.not_staged) == (1, 2, 1, 1)
    assert not counted.passed
    text = score.table(results)
    assert "failing programs: 1 of 3 right, 1 wrong, 1 cannot tell, 1 confidently wrong (>= 0.8)" in text
    assert "false alarms 1/2" in text
    assert "no memory cgroup can be made here" in text
    assert len({line.index("torch") for line in text.splitlines() if line.startswith("some-case")}) == 1
    assert json.loads(json.dumps(score.as_json(results)))["totals"]["right"] == 1


def test_what_was_not_staged_is_no_success(make_case: MakeCase) -> None:
    case = make_case()
    skipped = score.not_staged(case, "no root", healthy=False)
    assert not score.totals([skipped]).passed
    right = score.judge(case, ran(answer("unhandled-exception")), healthy=False)
    assert score.totals([skipped, right]).passed


def test_a_warning_that_is_wanted_and_does_not_come_is_wrong(make_case: MakeCase) -> None:
    case = make_case(cause='cause = "none"', outcome="completed", exit_code=0, more='warns = "waits for data"')
    silent = score.judge(case, ran(answer(None, "completed"), exit_code=0), healthy=False)
    assert (silent.verdict, silent.note) == ("wrong", "no warning has 'waits for data': none came")
    told = ran(answer(None, "completed"), exit_code=0, stderr="holdfast: training waits for data 80% of the time\n")
    assert score.judge(case, told, healthy=False).verdict == "right"
