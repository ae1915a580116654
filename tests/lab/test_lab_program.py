import json
import sys
from collections.abc import Callable

import pytest

from lab import program
from lab.__main__ import main
from lab.case import Case
from lab.stage import CannotStage

MakeCase = Callable[..., Case]


@pytest.fixture(autouse=True)
def no_framework_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "FRAMEWORKS", {"torch": ()})


def test_both_twins_run_as_train_py_in_a_folder_of_their_own(make_case: MakeCase) -> None:
    source = "import os, sys\nprint(sys.argv, sorted(os.listdir()))\nsys.exit({})\n"
    case = make_case(train=source.format(1), healthy=source.format(0))
    for healthy in (False, True):
        ran = program.run(case, healthy=healthy, bare=True)
        assert ran.exit_code == (0 if healthy else 1)
        assert ran.stdout == "['train.py'] ['train.py']\n"


@pytest.mark.parametrize("to", ["script", "holdfast"])
def test_the_signal_is_sent_after_the_line_and_spares_the_healthy_twin(make_case: MakeCase, to: str) -> None:
    case = make_case(
        train="import time\nprint('hello')\ntime.sleep(100)\nprint('done')\n",
        healthy="import time\nprint('hello')\ntime.sleep(1)\nprint('done')\n",
        more=f'[ending]\nsignal = "SIGKILL"\nafter_output = "hello"\nto = "{to}"',
    )
    ran = program.run(case, healthy=False, bare=True)
    assert (ran.exit_code, ran.stdout) == (137, "hello\n")
    assert program.run(case, healthy=True, bare=True).stdout == "hello\ndone\n"


def test_a_signal_that_came_too_late_is_told(make_case: MakeCase) -> None:
    case = make_case(healthy=None, more='[ending]\nsignal = "SIGKILL"\nafter_output = "goodbye"')
    assert program.run(case, healthy=False, bare=True).trouble == "ended before it printed 'goodbye'"


def test_a_seed_places_the_fault_in_both_twins_and_no_seed_leaves_it(make_case: MakeCase) -> None:
    source = "STEP = 3\nprint(STEP)\n"
    case = make_case(train=source, healthy=source, more="[seeded]\nSTEP = [100, 999999]")
    said = [
        [program.run(case, healthy=healthy, bare=True, seed=seed).stdout for healthy in (False, True)]
        for seed in (None, 1, 2, 1)
    ]
    assert said[0] == ["3\n", "3\n"]
    assert said[1] == said[3] != said[2]
    assert all(twins[0] == twins[1] and 100 <= int(twins[0]) <= 999999 for twins in said[1:])


def test_a_seed_chooses_the_moment_of_the_signal(make_case: MakeCase) -> None:
    case = make_case(
        train="import time\nfor step in range(3):\n    print('step', step)\n    time.sleep(2.5)\n",
        healthy=None,
        more='[ending]\nsignal = "SIGKILL"\nafter_output = ["step 0", "step 1"]',
    )
    lines = {program.run(case, healthy=False, bare=True, seed=seed).stdout.count("\n") for seed in (2, 3)}
    assert lines == {1, 2}


def test_it_is_told_when_the_first_word_of_a_warning_came(make_case: MakeCase) -> None:
    warning = "import sys, time\ntime.sleep(0.5)\nsys.stderr.write('holdfast: oh')\nsys.stderr.flush()\ntime.sleep(1)\n"
    case = make_case(train=warning)
    assert program.run(case, healthy=True, bare=True).warned_after is None
    ran = program.run(case, healthy=False, bare=True)
    assert ran.warned_after is not None and 0.5 <= ran.warned_after < ran.seconds - 0.2


@pytest.mark.root
@pytest.mark.alone
def test_a_neighbour_runs_out_of_its_own_memory_beside_either_twin(make_case: MakeCase) -> None:
    count = "int(open('/proc/vmstat').read().split('oom_kill ')[1].split()[0])"
    wait = f"import time\nbefore = {count}\nprint('hello')\nwhile {count} == before:\n    time.sleep(0.01)\n"
    case = make_case(train=wait, healthy=wait, more='[neighbour]\nmemory = "40M"\nafter_output = "hello"')
    try:
        codes = [program.run(case, healthy=healthy, bare=True).exit_code for healthy in (False, True)]
    except CannotStage as reason:
        pytest.skip(str(reason))
    assert codes == [0, 0]


def test_a_program_that_does_not_end_is_stopped(make_case: MakeCase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "TIMEOUT_S", 0.5)
    ran = program.run(make_case(train="import time\ntime.sleep(60)\n"), healthy=False, bare=True)
    assert (ran.exit_code, ran.trouble) == (None, "still running after 0 s")
    assert ran.seconds < 40


def test_a_process_left_behind_is_named_and_ended(make_case: MakeCase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "LEFTOVERS_GRACE_S", 0.3)
    case = make_case(train="import subprocess\nsubprocess.Popen(['sleep', '60'])\n")
    assert program.run(case, healthy=False, bare=True).trouble == "left running: sleep"


def test_a_missing_tool_or_framework_is_said(make_case: MakeCase, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(more='needs = ["no-such-tool"]')
    with pytest.raises(CannotStage, match="no no-such-tool here"):
        program.run(case, healthy=False, bare=True)
    monkeypatch.setattr(program, "FRAMEWORKS", {"torch": ("no_such_framework",)})
    with pytest.raises(CannotStage, match="no_such_framework is not installed"):
        program.run(case, healthy=False, bare=True)


def test_an_answer_that_is_no_json_is_told(make_case: MakeCase, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = [sys.executable, "-c", "import sys; print('hello'); sys.exit('broken' if sys.argv[1] == 'why' else 0)"]
    monkeypatch.setattr(program, "_holdfast", lambda: broken)
    ran = program.run(make_case(), healthy=True, bare=False)
    assert (ran.exit_code, ran.answer, ran.trouble) == (0, None, "why exited 1 and said: broken")


def test_an_unknown_case_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-such-case"]) == 2
    said = capsys.readouterr().err
    assert said.startswith("lab: no case is called no-such-case; there are: bash-wrapper")
    assert said.count("\n") == 1


def test_programs_side_by_side_are_told_in_the_order_of_the_cases(
    make_case: MakeCase, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    case = make_case(train="import time, sys\nprint('hello')\ntime.sleep(0.8)\nsys.exit(1)\n")
    monkeypatch.setattr("lab.__main__.load_all", lambda names, cases: [case, case])
    assert main(["--bare", "--jobs", "4", "--json"]) == 0
    results = json.loads(capsys.readouterr().out)["results"]
    assert [(result["program"], result["verdict"]) for result in results] == [
        ("failing", "right"),
        ("healthy", "right"),
    ] * 2
    assert main(["--bare", "--only", "healthy", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["results"]) == 2


def test_below_the_marks_the_exit_code_says_so(make_case: MakeCase, monkeypatch: pytest.MonkeyPatch) -> None:
    case = make_case(train="print('hello')\n")
    monkeypatch.setattr("lab.__main__.load_all", lambda names, cases: [case])
    assert main(["--bare"]) == 1


def test_the_list_names_the_quick_cases(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--quick"]) == 0
    assert "torch-segfault" in capsys.readouterr().out
