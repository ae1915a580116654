"""The data ended early: told while it runs; a cause only where the script's own error says so."""

from __future__ import annotations

from holdfast.detectors import find_endings
from holdfast.detectors.data_exhausted import find
from holdfast.diagnosis.verdict import diagnose
from holdfast.vocabulary import Event
from tests.story import START, story

ENDED = Event("train.data_exhausted", START + 5, {"steps_done": 40, "steps_asked": 100})


def test_it_is_told_with_the_steps() -> None:
    finding = find(story(None, events=[ENDED]))
    assert finding is not None
    assert finding.evidence[0].text == "the data ended before the steps did: 40 of 100 were done"


def test_an_epoch_that_ends_with_its_data_fell_short_of_nothing() -> None:
    whole = Event("train.data_exhausted", START + 5, {"steps_done": 50, "steps_asked": None, "epoch": 1})
    assert find(story(None, events=[whole])) is None


def test_an_epoch_that_found_no_data_left_is_told() -> None:
    first = Event("train.data_exhausted", START + 5, {"steps_done": 50, "steps_asked": None, "epoch": 0})
    second = Event("train.data_exhausted", START + 6, {"steps_done": 0, "steps_asked": None, "epoch": 1})
    finding = find(story(None, events=[first, second]))
    assert finding is not None
    assert finding.evidence[0].text == "the data ended in epoch 2 before the steps did"


def test_a_run_that_completed_has_no_cause() -> None:
    window = story(0, events=[ENDED])
    assert diagnose(window, find_endings(window)).cause is None


def test_a_stop_of_the_iterator_is_explained_by_it() -> None:
    words = {
        "stderr": b'Traceback (most recent call last):\n  File "/a/train.py", line 3, in <module>\n    x\nStopIteration\n'
    }
    window = story(1, output=words, events=[ENDED])
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "data-exhausted"


def test_another_error_after_it_is_that_error() -> None:
    words = {
        "stderr": b'Traceback (most recent call last):\n  File "/a/train.py", line 3, in <module>\n    x\nKeyError: 1\n'
    }
    window = story(1, output=words, events=[ENDED])
    answer = diagnose(window, find_endings(window))
    assert answer.cause is not None and answer.cause.id == "unhandled-exception"
    assert "data-exhausted" in [cause.id for cause in answer.also]
