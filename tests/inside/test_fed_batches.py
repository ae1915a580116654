"""What a DataLoader hands out is looked at before the model sees it: labels out of range, parts whose form changes. One process for each
policy runs all loops (`fed_loops.py`)."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.inside.fed_batches.forms import SETTLED, Forms
from holdfast.inside.fed_batches.imputing import fill_of, filled
from holdfast.inside.fed_batches.labels import ENOUGH_ROWS, LabelRange, in_words

ROOT = Path(__file__).parents[2]
BATCH, CLASSES, SLIP, EPOCHS = 24, 5, 300, 3  # as in `fed_loops`


@functools.cache
def ran(policy: str) -> dict[str, Any]:
    pytest.importorskip("torch")
    command = [sys.executable, "-m", "tests.inside.fed_loops", policy]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def told(policy: str, loop: str, kind: str) -> list[dict[str, Any]]:
    return [data for name, data in ran(policy)[loop]["told"] if name == kind]


@pytest.mark.parametrize("policy", ["advise", "protect"])
def test_no_look_of_ours_fails(policy: str) -> None:
    assert [
        (loop, told(policy, loop, "inside.failed")) for loop in ran(policy) if told(policy, loop, "inside.failed")
    ] == []


@pytest.mark.parametrize("loop", ["one_slip", "loader_of_each_epoch", "data_of_each_epoch", "two_data_sets", "by_name"])
def test_a_row_with_a_label_that_does_not_fit_is_left_out_in_every_epoch(loop: str) -> None:
    assert ran("protect")[loop]["ended"] is None
    left_out = [one for one in told("protect", loop, "numerics.went_on") if one["was"] == "fed with bad labels"]
    assert len(left_out) == EPOCHS and {one["how"] for one in left_out} == {"rows-left-out"}
    bad = told("protect", loop, "data.bad_labels")[0]
    assert (bad["row_count"], bad["of_rows"], bad["classes"], bad["indices"]) == (1, BATCH, CLASSES, [SLIP])
    assert bad["values"] == ([-3] if loop == "by_name" else [9]) and bad["sure"] is True


def test_under_advise_it_is_told_before_the_script_ends_with_its_own_error() -> None:
    assert "out of bounds" in ran("advise")["one_slip"]["ended"]
    assert told("advise", "one_slip", "data.bad_labels") and not told("advise", "one_slip", "numerics.went_on")


@pytest.mark.parametrize("loop", ["many", "a_class_too_few"])
def test_where_it_is_no_slip_nothing_is_trained_that_was_not_meant(loop: str) -> None:
    assert "out of bounds" in ran("protect")[loop]["ended"]
    assert told("protect", loop, "data.bad_labels")


@pytest.mark.parametrize("policy", ["advise", "protect"])
@pytest.mark.parametrize(
    "loop",
    ["healthy", "classes_that_come_later", "ignored", "remapped", "remapped_in_place", "filled_by_the_script"],
)
def test_labels_that_the_loss_passes_over_or_the_script_changes_are_left_alone(policy: str, loop: str) -> None:
    found = ran(policy)[loop]
    assert found["ended"] is None and found["same"] is True
    assert not told(policy, loop, "data.bad_labels") and not told(policy, loop, "numerics.went_on")


def test_values_that_are_missing_in_batch_after_batch_are_imputed_and_the_run_goes_on() -> None:
    found = ran("protect")["missing_in_every_batch"]
    went_on = told("protect", "missing_in_every_batch", "numerics.went_on")
    assert found["ended"] is None and not told("protect", "missing_in_every_batch", "numerics.gave_up")
    assert [one["how"] for one in went_on] == ["batch-skipped"] * 5 + ["values-imputed", "batch-skipped"]
    assert went_on[5]["text"].startswith(
        "from step 7 on, what is not finite in x is replaced by the mean of its column"
    )
    assert max(one["step"] for one in told("protect", "missing_in_every_batch", "numerics.non_finite")) == 6


def test_under_advise_nothing_is_imputed() -> None:
    assert not told("advise", "missing_in_every_batch", "numerics.went_on")


@pytest.mark.parametrize(
    ("loop", "was", "now"), [("another_type", "float32", "float64"), ("another_axis", "2 axes", "3 axes")]
)
def test_a_part_of_the_batch_that_changes_its_form_is_told(loop: str, was: str, now: str) -> None:
    changed = told("advise", loop, "data.form_changed")[0]
    assert (changed["name"], changed["was"], changed["now"]) == ("0", was, now)
    assert changed["step"] == 20  # the last batch of the first epoch


@pytest.mark.parametrize("loop", ["healthy", "one_slip", "by_name", "ignored"])
def test_other_batches_keep_their_form(loop: str) -> None:
    assert not told("advise", loop, "data.form_changed")


def labels(*values: int) -> Any:
    return np.array(values, dtype="int64")


def test_labels_in_range_and_those_that_are_passed_over_are_no_finding() -> None:
    seen = LabelRange("y", 3, -100)
    assert seen.find(labels(0, 1, 2)) == [] and seen.find(labels(-100, 2, -100)) == []
    assert seen.find(labels(0, 3, -1)) == [1, 2]
    assert seen.find(np.array([[[0, 1], [2, 2]], [[0, 7], [1, 1]]])) == [1]


def test_a_slip_is_left_out_once_enough_rows_were_seen() -> None:
    seen = LabelRange("y", 3, None)
    batch = labels(1, 2, 9, 0)
    rows = seen.find(batch)
    told = seen.told(batch, rows)
    assert in_words(told) == "row 2, labelled 9: the model has 3 outputs, for 0 to 2"
    assert not seen.may_leave_out(4, [17])
    seen.find(np.zeros(ENOUGH_ROWS, "int64"))
    assert seen.may_leave_out(4, [17])


def test_labels_that_count_from_one_are_no_slip() -> None:
    seen = LabelRange("y", 100, None)
    seen.find(np.arange(1, 90))
    batch = labels(7, 100)
    seen.told(batch, seen.find(batch))
    assert not seen.may_leave_out(2, [17])


def test_a_batch_of_nothing_else_is_never_emptied() -> None:
    seen = LabelRange("y", 3, None)
    seen.find(np.zeros(1000, "int64"))
    batch = labels(5, 6)
    seen.told(batch, seen.find(batch))
    assert not seen.may_leave_out(2, [1, 2])


@pytest.mark.parametrize(("contents", "is_left_out"), [([1, 1, 1, 1], True), ([1, 2, 3, 4], False)])
def test_several_different_rows_with_one_label_are_a_class_and_one_row_again_and_again_is_not(
    contents: list[int], is_left_out: bool
) -> None:
    seen = LabelRange("y", 3, None)
    for content in contents:
        seen.find(np.zeros(200, "int64"))
        batch = labels(0, 1, 3)
        seen.told(batch, seen.find(batch))
        last = seen.may_leave_out(3, [content])
    assert last is is_left_out


def test_what_is_filled_in_is_the_mean_of_the_finite_values_of_each_column() -> None:
    array = np.array([[1, np.nan, np.inf], [3, 5, np.nan]], "f")
    fill = fill_of(array)
    assert fill.tolist() == [2, 5, 0] and fill.dtype == array.dtype
    done = filled(array, fill)
    assert done.tolist() == [[1, 5, 0], [3, 5, 0]] and done.dtype == array.dtype and np.isnan(array[0, 1])
    assert filled(done, fill) is None
    assert float(fill_of(np.array([1, np.nan, 2], "d"))) == 1.5


def test_lengths_of_axes_may_differ_from_batch_to_batch_and_the_first_batches_may_settle() -> None:
    forms = Forms()
    for length in range(1, 3 * SETTLED):
        assert forms.changed([("x", np.zeros((4, length), "f" if length > 2 else "d"))]) == []
    changed = forms.changed([("x", np.zeros((4, 2), "d")), ("new", np.zeros(3))])
    assert changed == [{"name": "x", "was": "float32", "now": "float64", "what": "dtype"}]
