import difflib
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.causes import CAUSES
from lab.case import BadCase, Case, Tmpfs, load, load_all, parse_size

MakeCase = Callable[..., Case]


def test_a_case_is_read_with_its_limits_and_its_ending(make_case: MakeCase) -> None:
    case = make_case(
        more="""
[limits]
memory = "900M"
pids = 40
tmpfs = [{path = "/dev/shm", size = "8M"}]
[ending]
signal = "SIGTERM"
after_output = "epoch 2"
to = "holdfast"
"""
    )
    assert (case.name, case.accept, case.command) == ("some-case", ("unhandled-exception",), ("python", "train.py"))
    assert (case.limits.memory, case.limits.pids, case.limits.nofile) == (900 << 20, 40, None)
    assert not case.limits.memory_above_imports
    assert case.limits.tmpfs == (Tmpfs("/dev/shm", 8 << 20),)
    assert case.ending is not None
    assert (case.ending.signal, case.ending.to) == (signal.SIGTERM, "holdfast")


def test_a_limit_can_be_given_above_what_the_imports_take(make_case: MakeCase) -> None:
    limits = make_case(more='[limits]\nmemory = "imports+500M"\ncpu_seconds = "imports+6"').limits
    assert (limits.memory, limits.memory_above_imports) == (500 << 20, True)
    assert (limits.cpu_seconds, limits.cpu_above_imports) == (6, True)


def test_cause_none_means_that_no_cause_may_be_named(make_case: MakeCase) -> None:
    case = make_case(cause='cause = "none"')
    assert (case.accept, case.expected) == ((), "none")


def test_two_causes_can_be_accepted(make_case: MakeCase) -> None:
    assert make_case(cause='accept = ["killed", "terminated"]').expected == "killed | terminated"


def test_a_program_ended_from_outside_is_its_own_twin(make_case: MakeCase) -> None:
    case = make_case(healthy=None, more='[ending]\nsignal = "SIGKILL"\nafter_output = "hello"')
    assert case.healthy_program.name == "train.py"


def test_the_line_to_be_named_is_found_by_its_text(make_case: MakeCase) -> None:
    case = make_case(train="print('hello')\nif True:\n    1 / 0\n", more='[evidence]\nline = "1 / 0"')
    assert case.evidence_line_numbers() == [3]


@pytest.mark.parametrize(
    ("more", "complaint"),
    [
        ("colour = 3", "has no colour"),
        ("[limits]\nmemroy = '1G'", "has no memroy"),
        ("[limits]\nmemory = '1 gig'", "is no size"),
        ("[ending]\nsignal = 'SIGNOPE'\nafter_output = ''", "is no signal"),
        ("[ending]\nsignal = 'SIGTERM'", "after_output is missing"),
        ("[ending]\nsignal = 'SIGTERM'\nafter_output = ''\nto = 'me'", "ending.to is 'me'"),
        ("policy = 'hope'", "policy is 'hope'"),
        ("[evidence]\nline = 'not there'", "must be one line of train.py"),
        ("accept = ['killed']", "either cause or accept"),
        ("[[[", "expect.toml"),
    ],
)
def test_a_mistake_is_named(make_case: MakeCase, more: str, complaint: str) -> None:
    with pytest.raises(BadCase, match=complaint.replace("[", r"\[")):
        make_case(more=more)


def test_a_missing_twin_is_named(make_case: MakeCase) -> None:
    with pytest.raises(BadCase, match=r"healthy\.py is missing"):
        make_case(healthy=None)


def test_an_unknown_name_is_answered_with_those_there_are(make_case: MakeCase, tmp_path: Path) -> None:
    make_case()
    assert [case.name for case in load_all(["some-case"], tmp_path)] == ["some-case"]
    with pytest.raises(BadCase, match=r"called other; there are: some-case"):
        load_all(["other"], tmp_path)


def test_sizes() -> None:
    assert [parse_size(text) for text in ("12", "3K", "900M", "4G")] == [12, 3072, 900 << 20, 4 << 30]


def test_a_case_without_a_train_py_is_a_healthy_program_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "healthy.py").write_text("print('hello')\n")
    (tmp_path / "expect.toml").write_text('title = "Fine"\nframework = "jax"\nprints = "hello"\n')
    case = load(tmp_path)
    assert (case.has_fault, case.programs, case.expected) == (False, (tmp_path / "healthy.py",), "none")


def test_the_seed_may_choose_among_moments_for_the_signal(make_case: MakeCase) -> None:
    case = make_case(more='[ending]\nsignal = "SIGTERM"\nafter_output = ["epoch 1", "epoch 2"]')
    assert case.ending is not None
    assert case.ending.after_output == ("epoch 1", "epoch 2")


def test_a_constant_for_the_seed_must_be_in_the_failing_program(make_case: MakeCase) -> None:
    with pytest.raises(BadCase, match=r"train\.py has no line STEP = NUMBER"):
        make_case(train="STEP = 'three'\n", more="[seeded]\nSTEP = [1, 9]")


def test_there_are_as_many_programs_and_causes_as_we_say() -> None:
    cases = load_all()
    assert sum(case.has_fault for case in cases) >= 36
    assert len({cause for case in cases for cause in case.accept}) >= 30
    assert sum(not case.has_fault for case in cases) >= 12
    assert {case.framework for case in cases} == {"keras", "tf", "torch", "jax"}


def test_every_label_is_a_cause_with_a_record() -> None:
    labels = {cause for case in load_all() for cause in case.accept}
    assert labels <= set(CAUSES)


@pytest.mark.parametrize("case", [case for case in load_all() if case.has_fault], ids=lambda case: case.name)
def test_a_case_of_ours_differs_from_its_twin_by_the_fault_only(case: Case) -> None:
    failing, healthy = ((case.folder / name).read_text() for name in ("train.py", case.healthy_program.name))
    changed = [line for line in difflib.ndiff(failing.splitlines(), healthy.splitlines()) if line[0] in "+-"]
    assert len(changed) <= 10
    assert bool(changed) != (case.ending is not None)
    assert "holdfast" not in (failing + healthy).lower()
