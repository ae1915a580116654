"""The captured outputs: what may be in them, how well they are answered, and the levels that follow from that."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from holdfast.causes import CAUSES
from holdfast.vocabulary import LEVELS
from lab.case import BadCase
from lab.corpus import captured, program
from lab.corpus.answers import Answer, Counts, answers, counts
from lab.corpus.calibration import confident_border, fitted, report
from lab.corpus.capture import CURRENT, Environment, NotKept, capture, environment, neutral, words
from lab.corpus.captured import LARGEST_BYTES, Capture, shortened
from lab.corpus.lab_outputs import FAMILY as LAB
from lab.corpus.program import Program

CORPUS = Path(captured.__file__).parent
CAPTURES = captured.load_all()
LARGEST_WHOLE = 1_500_000
OF_THE_MACHINE = re.compile(r"/work/|/root/|/opt/|/tmp/job-|pypi|corpus-envs")


def told(confidence: float, right: bool, count: int = 1, causes: tuple[str, ...] = ("disk-full",)) -> list[Answer]:
    capture = Capture("some-program", "files", "current", causes, 1, "")
    return [Answer(capture, "disk-full" if right else "killed", confidence)] * count


def test_it_is_large_enough_to_say_something() -> None:
    failing = [one for one in CAPTURES if one.causes]
    assert len(failing) >= 150
    assert len({cause for one in failing for cause in one.causes if cause in CAUSES}) >= 40
    assert len(CAPTURES) - len(failing) >= 60


def test_each_output_is_short_and_names_nothing_of_the_machine_it_ran_on() -> None:
    assert CAPTURES
    assert [one.program for one in CAPTURES if len(one.text.encode()) > LARGEST_BYTES] == []
    assert [found[0] for one in CAPTURES if (found := OF_THE_MACHINE.search(one.text))] == []
    assert sum(path.stat().st_size for path in (CORPUS / "captures").iterdir()) < LARGEST_WHOLE


def test_the_versions_of_every_environment_are_known() -> None:
    assert {one.environment for one in CAPTURES} <= captured.versions().keys()


def test_labels_are_those_of_the_programs_and_name_causes_there_are() -> None:
    labels = {one.name: one.causes for one in program.load_all()}
    assert [one.program for one in CAPTURES if one.family != LAB and labels.get(one.program) != one.causes] == []
    assert [one.program for one in CAPTURES if one.causes and not {*one.causes} & CAUSES.keys()] == []


def test_it_is_answered_as_well_as_before_and_the_levels_are_those_that_follow() -> None:
    found = answers(CAPTURES)
    now = counts([one for one in found if one.capture.family != LAB])
    before = Counts(**tomllib.loads((CORPUS / "floor.toml").read_text()))
    assert (now.failing, now.healthy) == (before.failing, before.healthy)
    assert now.right >= before.right, report(found)
    assert now.wrong <= before.wrong and now.false_alarms <= before.false_alarms, report(found)
    assert now.confidently_wrong <= before.confidently_wrong, report(found)
    assert confident_border(fitted(found)) == LEVELS["confident"], report(found)
    assert f"`confident` from {LEVELS['confident']} on" in (CORPUS.parents[1] / "docs" / "why.md").read_text()


ENOUGH = told(0.92, True, 50) + told(0.82, True, 20)


@pytest.mark.parametrize(
    ("found", "border"),
    [
        (ENOUGH, 0.75),  # 0.7 to 0.8 was never seen
        (ENOUGH + told(0.72, True, 20), 0.65),
        (ENOUGH + told(0.72, True, 18) + told(0.72, False, 2), 0.65),  # of all, 98 %; of that tenth, 90 %
        (ENOUGH + told(0.72, True, 17) + told(0.72, False, 3), 0.75),
        (told(0.92, True, 200) + told(0.82, True, 18) + told(0.82, False, 3), 0.85),
        (told(0.92, True, 97) + told(0.92, False, 3), 0.85),
        (told(0.92, True, 96) + told(0.92, False, 4), None),
        (told(0.92, True, 19), None),
        (ENOUGH + told(0.92, True, 3, causes=()), None),  # alarms on healthy outputs
    ],
)  # fmt: skip
def test_the_border_is_the_lowest_from_which_answers_are_right(found: list[Answer], border: float | None) -> None:
    assert confident_border(found) == border


def test_an_answer_to_a_healthy_output_is_wrong() -> None:
    alarm, quiet = told(0.9, True, causes=())[0], Answer(told(0.9, True, causes=())[0].capture, "")
    assert (alarm.right, alarm.false_alarm, alarm.confidently_wrong) == (False, True, True)
    assert (quiet.right, quiet.false_alarm, quiet.confidently_wrong) == (True, False, False)
    assert counts([alarm, quiet, *told(0.9, True), *told(0.6, False)]) == Counts(2, 1, 1, 0, 2, 1, 1)


def test_of_a_long_output_its_beginning_and_its_end_are_kept() -> None:
    text = shortened("".join(f"line {number}\n" for number in range(5000)))
    assert len(text.encode()) <= LARGEST_BYTES
    assert text.startswith("line 0\n") and text.endswith("line 4999\n")
    assert all(line == "[...]" or line.startswith("line ") for line in text.splitlines())


def test_versions_that_say_the_same_at_other_lines_are_one() -> None:
    frame = 'Traceback (most recent call last):\n  File "a.py", line {}, in f\n    f()\nValueError: 3 is no {}\n'
    assert words(frame.format(7, "size")) == words("I0000 log\n" + frame.format(9, "size"))
    assert words(frame.format(7, "size")) != words(frame.format(7, "shape"))


def test_a_program_has_a_name_of_its_own(tmp_path: Path) -> None:
    one = '[[program]]\nname = "twice"\ncauses = []\ncode = ""\n'
    (tmp_path / "a.toml").write_text(one)
    assert [(found.name, found.family, found.healthy) for found in program.load_all(tmp_path)] == [("twice", "a", True)]
    (tmp_path / "b.toml").write_text(one)
    with pytest.raises(BadCase, match="two programs are called twice"):
        program.load_all(tmp_path)


def test_paths_are_told_as_a_user_has_them_and_what_else_names_the_machine_is_not_kept() -> None:
    here = Environment("torch-9", Path("/srv/envs/torch-9/bin/python"), ("/srv/envs/torch-9",), "/srv/python3.12", {})
    text = 'File "/tmp/job-a1_b/train.py"\nFile "/srv/envs/torch-9/lib/x.py"\nFile "/srv/python3.12/lib/os.py"\n'
    assert neutral(text, here) == (
        'File "/home/user/project/train.py"\nFile "/home/user/venv/lib/x.py"\nFile "/usr/lib/os.py"\n'
    )
    with pytest.raises(NotKept, match="/root/secret"):
        neutral("cannot open /root/secret", here)


@pytest.mark.root
def test_a_program_is_run_and_what_it_prints_is_kept_if_it_ended_as_it_is_labelled() -> None:
    where = environment(CURRENT, Path(sys.executable))
    failing = Program("slip", "system", ("unhandled-exception",), (CURRENT,), "print('epoch 1')\nprint(1 / 0)\n")
    kept = capture(failing, where)
    assert (kept.program, kept.causes, kept.exit_code) == ("slip", ("unhandled-exception",), 1)
    assert kept.text.startswith("epoch 1\nTraceback") and 'File "/home/user/project/train.py", line 2' in kept.text
    with pytest.raises(NotKept, match="exit code 1"):
        capture(Program("slip", "system", (), (CURRENT,), failing.code), where)
