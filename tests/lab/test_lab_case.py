import difflib
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.case import BadCase, Case, Tmpfs, load_all, parse_size

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
    assert case.limits.tmpfs == (Tmpfs("/dev/shm", 8 << 20),)
    assert case.ending is not None
    assert (case.ending.signal, case.ending.to) == (signal.SIGTERM, "holdfast")


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
    assert case.evidence_line_number() == 3


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


@pytest.mark.parametrize("case", load_all(), ids=lambda case: case.name)
def test_a_case_of_ours_differs_from_its_twin_by_the_fault_only(case: Case) -> None:
    failing, healthy = ((case.folder / name).read_text() for name in ("train.py", case.healthy_program.name))
    changed = [line for line in difflib.ndiff(failing.splitlines(), healthy.splitlines()) if line[0] in "+-"]
    assert len(changed) <= 10
    assert bool(changed) != (case.ending is not None)
    assert "holdfast" not in (failing + healthy).lower()
