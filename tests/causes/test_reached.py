"""A cause that nothing can find is marked as such in the list of causes."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.causes import CAUSES
from holdfast.causes.form import CauseRecord, rule
from holdfast.causes.form.page import page
from holdfast.causes.form.reached import SURE, by_its_rules, not_reached
from holdfast.diagnosis import weighing

MOST_NOT_REACHED = 3  # as it stands: a new cause comes with what finds it


def record(**fields: object) -> CauseRecord:
    return CauseRecord(id="cold-coffee", family="process", title="", meaning="", sure="", **fields)  # type: ignore[arg-type]


def finders(folder: Path, code: str) -> Path:
    (folder / "detectors").mkdir()
    (folder / "detectors" / "coffee.py").write_text(code)
    return folder


@pytest.mark.parametrize(
    ("fields", "reached"),
    [
        ({}, False),
        ({"lines": (rule(0.9, "the coffee is cold"),)}, True),
        ({"exceptions": (rule(SURE, "cold"),)}, True),
        ({"lines": (rule(0.4, "coffee"),)}, False),
        ({"signals": {11: 0.9}}, True),
        ({"last_frames": ((0.3, "drink"),)}, False),
    ],
)
def test_a_rule_that_is_surer_than_a_guess_reaches_its_cause(fields: dict[str, object], reached: bool) -> None:
    assert by_its_rules(record(**fields)) is reached


def test_so_does_a_detector_that_names_it(tmp_path: Path) -> None:
    named = finders(tmp_path, "def coffee(window):\n    return Finding('cold-coffee', 0.9, ())\n")
    assert not_reached([record()], named) == frozenset()


def test_a_detector_of_something_else_does_not(tmp_path: Path) -> None:
    other = finders(tmp_path, "# cold-coffee\nCAUSE = 'cold-coffee-machine'\n")
    assert not_reached([record()], other) == {"cold-coffee"}


def test_the_page_marks_those_and_no_others() -> None:
    missing = not_reached(CAUSES.values())
    marked = {line.split("`")[1] for line in page().splitlines() if "| *Not reached yet.*" in line}
    assert marked == missing
    assert len(missing) <= MOST_NOT_REACHED


def test_sure_means_the_same_here_and_where_findings_are_weighed() -> None:
    assert SURE == weighing.SURE
