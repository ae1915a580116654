"""Labels that do not fit, and parts of batches that change: told where they are known to matter."""

from __future__ import annotations

from holdfast.detectors import find_endings
from holdfast.detectors.fed_batches import find_form, find_labels
from holdfast.diagnosis.verdict import diagnose
from holdfast.vocabulary import Event
from tests.story import START, story

BAD = {"step": 12, "sure": True, "name": "1", "rows": [7], "row_count": 1, "of_rows": 32, "values": [10], "classes": 10}
LABELS = Event("data.bad_labels", START + 5, {**BAD, "indices": [1234]})
LEFT_OUT = Event(
    "numerics.went_on",
    START + 5,
    {"step": 12, "how": "rows-left-out", "text": "left out", "was": "fed with bad labels"},
)
FORM = Event(
    "data.form_changed", START + 5, {"step": 20, "name": "0", "was": "float32", "now": "float64", "what": "dtype"}
)
KEY_ERROR = b'Traceback (most recent call last):\n  File "/a/train.py", line 3, in <module>\n    x\nKeyError: 1\n'
OUT_OF_BOUNDS = KEY_ERROR.replace(b"KeyError: 1", b"IndexError: Target 10 is out of bounds.")


def test_the_place_in_the_data_is_named() -> None:
    finding = find_labels(story(None, events=[LABELS]))
    assert finding is not None and finding.cause == "label-out-of-range"
    assert finding.evidence[0].text == (
        "the batch of step 12 has 1 row of 32 labelled 10 (row 7 of it; 1234 of the data set); "
        "the model has 10 outputs, so labels go from 0 to 9"
    )


def test_a_run_that_left_such_rows_out_recovered_from_them() -> None:
    window = story(0, events=[LABELS, LEFT_OUT])
    finding = find_labels(window)
    assert finding is not None
    answer = diagnose(window, find_endings(window), [finding])
    assert answer.outcome == "recovered" and answer.cause is not None and answer.cause.id == "label-out-of-range"


def test_an_error_after_rows_were_left_out_is_that_error() -> None:
    window = story(1, output={"stderr": KEY_ERROR}, events=[LABELS, LEFT_OUT])
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "unhandled-exception"


def test_a_run_that_ended_for_a_label_is_told_where_it_lies() -> None:
    window = story(1, output={"stderr": OUT_OF_BOUNDS}, events=[LABELS])
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "label-out-of-range"
    assert any("1234 of the data set" in one.text for one in answer.cause.evidence)


def test_what_may_have_been_changed_on_its_way_is_no_alarm() -> None:
    unsure = Event(LABELS.kind, LABELS.at, {**LABELS.data, "sure": False})
    assert find_labels(story(None, events=[unsure])) is None


def test_a_change_of_form_is_evidence_beside_an_error_about_types() -> None:
    (found,) = find_form(story(1, events=[FORM]))
    assert found.evidence[0].text == "part 0 of the batch of step 20 is float64 where those before were float32"
    error = KEY_ERROR.replace(
        b"KeyError: 1", b"RuntimeError: mat1 and mat2 must have the same dtype, but got Double and Float"
    )
    window = story(1, output={"stderr": error}, events=[FORM])
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "dtype-mismatch"
    assert any("is float64 where" in one.text for one in answer.cause.evidence)


def test_a_change_of_form_alone_is_no_cause() -> None:
    window = story(1, output={"stderr": KEY_ERROR}, events=[FORM])
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "unhandled-exception"
