"""Programs that train badly: what is asked of them bare, and how what was noticed is judged."""

import ast
import difflib
import io
import tokenize
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.causes import CAUSES
from lab import score, training
from lab.case import NUMERICS, BadCase, Case, load_all
from lab.program import Ran

MakeCase = Callable[..., Case]
CASES = load_all(cases=NUMERICS)
FAILING = [case for case in CASES if case.has_fault]
HEALTHY = [case for case in CASES if not case.has_fault]
LEARNED = "hello\nfirst loss: 2.5\nfinal loss: 0.5\nweights: abc\n"


@pytest.fixture
def make_numeric(make_case: MakeCase, tmp_path: Path) -> MakeCase:
    """A case as those of lab/numerics: the folder above it says so."""

    def make(more: str = 'shows = ["final loss: nan"]', policy: str = "protect") -> Case:
        case = make_case(cause='cause = "bad-input-values"', outcome="completed", exit_code=0, more=more)
        folder = tmp_path / "numerics" / "some-case"
        folder.parent.mkdir()
        case.folder.rename(folder)
        return replace(case, folder=folder, policy=policy)

    return make


def found(cause: str, *evidence: str) -> dict[str, Any]:
    return {"id": cause, "confidence": 0.9, "evidence": [{"text": text} for text in evidence]}


def ran(
    *noticed: dict[str, Any],
    cause: dict[str, Any] | None = None,
    outcome: str = "completed",
    exit_code: int = 0,
    stdout: str = "hello\nfinal loss: nan\n",
) -> Ran:
    return Ran(exit_code, 1.5, stdout, "", {"outcome": outcome, "cause": cause, "noticed": list(noticed)})


def test_what_was_noticed_in_a_run_that_finished_counts_as_its_cause(make_numeric: MakeCase) -> None:
    result = score.judge(make_numeric(), ran(found("bad-input-values")), healthy=False)
    assert (result.verdict, result.got, result.confidence) == ("right", "bad-input-values", 0.9)


def test_so_does_the_cause_of_a_run_that_was_rescued_or_stopped(make_numeric: MakeCase) -> None:
    case = make_numeric()
    for outcome, code in (("recovered", 0), ("stopped", 1)):
        program = ran(cause=found("bad-input-values"), outcome=outcome, exit_code=code)
        assert score.judge(case, program, healthy=False).verdict == "right"


def test_only_the_worst_of_what_was_noticed_counts_and_the_rest_is_told(make_numeric: MakeCase) -> None:
    case = make_numeric()
    second = score.judge(case, ran(found("unscaled-input"), found("bad-input-values")), healthy=False)
    assert (second.verdict, second.got, second.confidently_wrong) == ("wrong", "unscaled-input", True)
    first = score.judge(case, ran(found("bad-input-values"), found("unscaled-input")), healthy=False)
    assert (first.verdict, first.note) == ("right", "also noticed: unscaled-input")


def test_nothing_noticed_is_cannot_tell(make_numeric: MakeCase) -> None:
    assert score.judge(make_numeric(), ran(), healthy=False).verdict == "cannot tell"


@pytest.mark.parametrize(
    ("stdout", "note"),
    [
        (LEARNED, ""),
        ("hello\nfirst loss: 2.5\nfinal loss: nan\n", "the final loss is nan"),
        ("hello\nfirst loss: 2.5\nfinal loss: 2.6\n", "the loss went from 2.5 to 2.6"),
        ("hello\nfirst loss: 2.5\n", "no first and final loss was printed"),
    ],
)
def test_a_program_that_can_go_on_must_learn_under_protect_alone(
    make_numeric: MakeCase, stdout: str, note: str
) -> None:
    case = make_numeric('shows = ["nan"]\ncontinues = true')
    program = ran(found("bad-input-values"), stdout=stdout)
    assert score.judge(case, program, healthy=False).note == note
    assert score.judge(replace(case, policy="advise"), program, healthy=False).verdict == "right"


def test_a_program_that_can_go_on_may_not_be_stopped(make_numeric: MakeCase) -> None:
    case = make_numeric('shows = ["nan"]\ncontinues = true')
    program = ran(cause=found("bad-input-values"), outcome="stopped", exit_code=1, stdout=LEARNED)
    assert score.judge(case, program, healthy=False).note == (
        "exit code 1, not 0; outcome stopped, not completed or recovered"
    )


def test_advise_may_not_end_what_would_have_gone_on(make_numeric: MakeCase) -> None:
    program = ran(cause=found("bad-input-values"), outcome="stopped", exit_code=1)
    result = score.judge(make_numeric(policy="advise"), program, healthy=False)
    assert result.note == "exit code 1, not 0; outcome stopped, not completed"


@pytest.mark.parametrize(
    ("text", "right"),
    [
        ("row 700 of the data is NaN, first seen at step 22", True),
        ("row 700 of the data is NaN, first seen in batch 21", True),
        ("row 700 of the data is NaN, first seen at step 24", False),
        ("row 7001 of the data is NaN, first seen at step 22", False),
    ],
)
def test_evidence_names_the_row_and_the_step_or_one_beside_it(make_numeric: MakeCase, text: str, right: bool) -> None:
    case = make_numeric("shows = ['nan']\n[evidence]\nmatches = ['row 700\\b']\nstep = 22")
    result = score.judge(case, ran(found("bad-input-values", text)), healthy=False)
    assert (result.verdict == "right") == right


def test_anything_noticed_in_a_healthy_program_is_a_false_alarm(make_numeric: MakeCase) -> None:
    case = make_numeric()
    quiet, noticed = ran(stdout=LEARNED), ran(found("unscaled-input"), stdout=LEARNED)
    assert score.judge(case, quiet, healthy=True, beside=quiet).verdict == "right"
    assert score.judge(case, noticed, healthy=True, beside=quiet).verdict == "false alarm"


def test_a_healthy_program_must_end_with_the_weights_of_a_bare_run(make_numeric: MakeCase) -> None:
    case, other = make_numeric(), ran(stdout=LEARNED.replace("abc", "def"))
    results = [
        judge(case, ran(stdout=LEARNED), healthy=True, beside=other) for judge in (score.judge, score.judge_bare)
    ]
    expected = ("wrong", "weights abc, without Holdfast def")
    assert [(result.verdict, result.note) for result in results] == [expected, expected]
    assert training.changed("", LEARNED) == ["no weights were printed"]


@pytest.mark.parametrize(
    ("stdout", "healthy", "complaints"),
    [
        ("hello\nfinal loss: nan\n", False, []),
        (LEARNED, False, ["does not show 'final loss: nan'"]),
        (LEARNED, True, []),
        ("hello\nfirst loss: 1\nfinal loss: nan\n", True, ["shows 'final loss: nan'", "the final loss is nan"]),
        ("hello\nfirst loss: 1\nfinal loss: 1.1\n", True, ["the loss went from 1 to 1.1"]),
    ],
)
def test_bare_the_failing_program_fails_and_its_twin_learns(
    make_numeric: MakeCase, stdout: str, healthy: bool, complaints: list[str]
) -> None:
    assert training.not_as_labelled(make_numeric(), stdout, healthy=healthy) == complaints


def test_a_twin_may_show_in_another_way_that_it_learned(make_numeric: MakeCase) -> None:
    case = make_numeric("shows = ['accuracy: 0.1']\nlearns = 'accuracy: 0.9'")
    assert training.not_as_labelled(case, "accuracy: 0.93", healthy=True) == []
    assert training.not_as_labelled(case, "accuracy: 0.5", healthy=True) == ["does not show 'accuracy: 0.9'"]


def test_losses_are_read_in_every_spelling() -> None:
    assert training.losses("first loss: 1e-3\nfinal loss: -2.5e+04\nfinal loss: 7") == (0.001, 7.0)
    assert str(training.losses("first loss: inf\nfinal loss: nan")) == "(inf, nan)"


def test_a_pattern_that_is_none_is_named(make_case: MakeCase) -> None:
    with pytest.raises(BadCase, match="is no pattern"):
        make_case(more="shows = ['(']")


# -- the programs


def test_there_are_as_many_programs_as_we_say() -> None:
    of_keras = [case for case in FAILING if case.framework in ("keras", "tf")]
    assert min(len(of_keras), len(FAILING) - len(of_keras)) >= 20
    assert {case.framework for case in CASES} == {"keras", "tf", "torch", "lightning", "transformers"}
    assert len(HEALTHY) >= 30
    assert sum(case.continues for case in FAILING) >= 15


@pytest.mark.parametrize("case", FAILING, ids=lambda case: case.name)
def test_a_program_differs_from_its_twin_by_the_fault_and_does_not_give_it_away(case: Case) -> None:
    failing, healthy = ((case.folder / name).read_text() for name in ("train.py", "healthy.py"))
    changed = [line for line in difflib.ndiff(failing.splitlines(), healthy.splitlines()) if line[0] in "+-"]
    assert 1 <= len(changed) <= 10
    assert "holdfast" not in (failing + healthy).lower()
    tokens = tokenize.generate_tokens(io.StringIO(failing).readline)
    assert [token.string for token in tokens if token.type == tokenize.COMMENT] == []
    assert set(case.accept) <= set(CAUSES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_healthy_program_prints_its_weights(case: Case) -> None:
    printed = [
        node.value
        for node in ast.walk(ast.parse(case.healthy_program.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    assert "weights:" in printed
