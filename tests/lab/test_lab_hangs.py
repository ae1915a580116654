"""Programs that stand still: how the laboratory waits for it, asks meanwhile, and judges."""

import difflib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.causes import CAUSES
from lab import frozen_files, program, score, standstill
from lab.case import HANGS, BadCase, Case, load_all

MakeCase = Callable[..., Case]

HANG = '[hang]\nafter_output = "hello"\nwithin_s = {within}\n[evidence]\nline = ["time.sleep(60)", "print(1)"]\n'
STANDS = "import time\nprint('hello', flush=True)\ntime.sleep(60)\nprint(1)\n"
# In place of Holdfast: says after a moment that the program stands still, and answers as told.
HOLDFAST = """
import json, signal, subprocess, sys, time
if sys.argv[1] == "run":
    script = subprocess.Popen(sys.argv[sys.argv.index("--") + 1 :])
    signal.signal(signal.SIGTERM, lambda *_: script.terminate())
    time.sleep({silent})
    print("holdfast: no progress", file=sys.stderr, flush=True)
    sys.exit(128 - script.wait())
print(json.dumps({answer}))
"""


@pytest.fixture(autouse=True)
def no_framework_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "FRAMEWORKS", {"torch": ()})
    monkeypatch.setattr(program, "LEFTOVERS_GRACE_S", 0.2)
    monkeypatch.setattr(standstill, "LATE_S", 0.5)
    monkeypatch.setattr(standstill, "ASK_EVERY_S", 0.1)


def stalled(text: str, cause: str = "deadlock", outcome: str = "stalled") -> dict[str, object]:
    evidence = [{"text": text}]
    return {"outcome": outcome, "cause": {"id": cause, "confidence": 0.9, "evidence": evidence}}


def judged(
    make_case: MakeCase,
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, object],
    within: float = 20.0,
    silent: float = 0.2,
) -> score.Result:
    case = make_case(train=STANDS, cause='cause = "deadlock"', exit_code=143, more=HANG.format(within=within))
    source = HOLDFAST.format(answer=repr(answer), silent=silent)
    monkeypatch.setattr(program, "_holdfast", lambda: [sys.executable, "-c", source])
    return score.judge(case, program.run(case, healthy=False, bare=False), healthy=False)


def test_it_is_right_when_why_says_so_while_the_program_stands_still(
    make_case: MakeCase, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = judged(make_case, monkeypatch, stalled("the main thread is at train.py:3 in <module>"))
    assert (result.verdict, result.note) == (score.RIGHT, "")
    assert result.stalled_after is not None and result.stalled_after < 15


@pytest.mark.parametrize(
    ("answer", "complaint"),
    [
        (stalled("at train.py:3", outcome="running"), "why said running while it stood still"),
        (stalled("at train.py:3", cause="infinite-loop"), "infinite-loop was named while it stood still"),
        (stalled("at train.py:1"), "no evidence line has 'train.py:3|4'"),
        ({"outcome": "stalled", "cause": None}, "why said stalled while it stood still"),
    ],
)
def test_another_answer_is_wrong(
    make_case: MakeCase, monkeypatch: pytest.MonkeyPatch, answer: dict[str, object], complaint: str
) -> None:
    result = judged(make_case, monkeypatch, answer, within=1.0)
    assert result.verdict in (score.WRONG, score.UNSURE)
    assert complaint in result.note


def test_the_right_answer_too_late_is_wrong(make_case: MakeCase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standstill, "LATE_S", 10.0)
    result = judged(make_case, monkeypatch, stalled("at train.py:3"), within=0.0, silent=1.0)
    assert result.verdict == score.WRONG and "s too late" in result.note


def test_bare_it_must_stand_still_by_itself(make_case: MakeCase, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(standstill, "QUIET_S", 0.5)
    case = make_case(train=STANDS, cause='cause = "deadlock"', more=HANG.format(within=20))
    ran = program.run(case, healthy=False, bare=True)
    assert score.judge_bare(case, ran, healthy=False).verdict == score.RIGHT
    (case.folder / "train.py").write_text("import time\nprint('hello', flush=True)\ntime.sleep(0.3)\n")
    ran = program.run(case, healthy=False, bare=True)
    assert score.judge_bare(case, ran, healthy=False).note == "ended by itself"


def test_a_case_that_stands_still_says_when_and_how_soon_it_must_be_noticed(make_case: MakeCase) -> None:
    case = make_case(train=STANDS, cause='cause = "deadlock"', more=HANG.format(within=25))
    assert case.hang is not None
    assert (case.hang.within_s, case.outcome, case.policy) == (25, "stalled", "advise")
    assert case.evidence_line_numbers() == [3, 4]


def test_a_mistake_in_it_is_named(make_case: MakeCase) -> None:
    with pytest.raises(BadCase, match=r"\[hang\] has no soon"):
        make_case(more="[hang]\nsoon = 3")


def test_a_worker_can_be_the_one_that_gets_the_signal(make_case: MakeCase) -> None:
    source = (
        "import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)'])\n"
        "print('hello', flush=True)\nprint(child.wait())\n"
    )
    case = make_case(
        train=source, healthy=None, more='[ending]\nsignal = "SIGKILL"\nafter_output = "hello"\nto = "worker"'
    )
    assert program.run(case, healthy=False, bare=True).stdout == "hello\n-9\n"


def test_a_person_answers_at_a_terminal_and_takes_time(make_case: MakeCase) -> None:
    source = "import sys, time\nprint('hello', flush=True)\nbegan = time.monotonic()\nprint(sys.stdin.isatty(), input())\nprint(time.monotonic() - began > 0.5)\n"
    case = make_case(healthy=source, more='[typed]\nafter_output = "hello"\nafter_s = 0.6\ntext = "yes\\n"')
    assert program.run(case, healthy=True, bare=True).stdout == "hello\nTrue yes\nTrue\n"


def test_it_is_suspended_for_a_while(make_case: MakeCase) -> None:
    source = "import time\nprint('hello', flush=True)\nbegan = time.monotonic()\ntime.sleep(0.1)\nlate = time.monotonic() - began\nprint(late > 0.9)\n"
    case = make_case(healthy=source, more='[suspended]\nafter_output = "hello"\nseconds = 1.0')
    assert program.run(case, healthy=True, bare=True).stdout == "hello\nTrue\n"


@pytest.mark.root
def test_a_file_system_of_its_own_is_read_until_it_is_frozen(tmp_path: Path) -> None:
    if not os.access(frozen_files.DEVICE, os.R_OK | os.W_OK):
        pytest.skip("/dev/fuse cannot be opened")
    with frozen_files.mounted(tmp_path / "shards") as server:
        read = "import numpy as np; print(np.load('shards/shard-007.npy').shape)"
        assert len(list((tmp_path / "shards").iterdir())) == frozen_files.SHARDS
        assert subprocess.check_output([sys.executable, "-c", read], cwd=tmp_path) == b"(256, 16)\n"
        frozen_files.freeze(server)
        time.sleep(0.2)
        with subprocess.Popen(["cat", "shards/shard-008.npy"], cwd=tmp_path, stderr=subprocess.DEVNULL) as waiting:
            time.sleep(1.0)
            still_there = waiting.poll() is None
            server.kill()
            assert (still_there, waiting.wait(10)) == (True, 1)


CASES = load_all(cases=HANGS)


def test_there_are_enough_of_both_kinds_for_both_frameworks() -> None:
    failing = [case for case in CASES if case.has_fault]
    assert sum(not case.has_fault for case in CASES) >= 15
    for framework in ("keras", "torch"):
        causes = {cause for case in failing if case.framework == framework for cause in case.accept}
        assert causes >= {"deadlock", "infinite-loop", "io-stall", "worker-died"}
    assert {cause for case in failing for cause in case.accept} <= set(CAUSES)
    stands = [case for case in failing if not case.warns]  # one only gets slower, and is warned about
    assert all(case.hang is not None or case.outcome == "recovered" for case in stands)
    assert all(case.evidence.line or case.evidence.contains for case in stands)


@pytest.mark.parametrize("case", [case for case in CASES if case.has_fault], ids=lambda case: case.name)
def test_a_program_that_stands_still_differs_from_its_twin_by_the_fault_only(case: Case) -> None:
    failing, healthy = ((case.folder / name).read_text() for name in ("train.py", case.healthy_program.name))
    changed = [line for line in difflib.ndiff(failing.splitlines(), healthy.splitlines()) if line[0] in "+-"]
    assert len(changed) <= 10
    assert bool(changed) != case.fault_from_outside
    assert "holdfast" not in (failing + healthy).lower()
