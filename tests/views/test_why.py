"""What people and programs are shown."""

from __future__ import annotations

import json

from holdfast.detectors import find_endings
from holdfast.diagnosis.verdict import diagnose
from holdfast.views.why_json import as_json
from holdfast.views.why_text import as_text
from tests.story import story

ERROR = (
    b'Traceback (most recent call last):\n  File "/home/ada/train.py", line 3, in <module>\nKeyError: "\x1b[2Jx\x07"\n'
)


def test_the_json_has_the_contracts_shape() -> None:
    window = story(1, None, {"stderr": ERROR})
    answer = json.loads(as_json("r1", window, diagnose(window, find_endings(window))))
    assert list(answer) == ["run", "outcome", "cause", "also", "actions", "resume"]
    assert list(answer["cause"]) == ["id", "title", "confidence", "evidence", "remedies"]
    assert list(answer["cause"]["evidence"][0]) == ["text", "source", "at", "value"]
    assert answer["cause"]["evidence"][0]["at"] == "1970-01-12T13:47:40Z"
    assert list(answer["cause"]["remedies"][0]) == ["title", "how"]


def test_the_text_says_the_verdict_first_and_fits_80_columns() -> None:
    window = story(1, None, {"stderr": ERROR})
    text = as_text("r1", window, diagnose(window, find_endings(window)), [], colour=False)
    assert text.startswith("The script raised KeyError")
    assert all(len(line) <= 80 for line in text.split("\n"))
    assert "\x1b" not in text and "\x07" not in text


def test_colour_only_when_asked_for() -> None:
    window = story(0, None)
    diagnosis = diagnose(window, [])
    assert "\x1b[" in as_text("r1", window, diagnosis, [], colour=True)
    assert "\x1b[" not in as_text("r1", window, diagnosis, [], colour=False)


def test_where_it_cannot_tell_the_last_words_are_shown() -> None:
    window = story(3, None, {"stdout": b"epoch 1\nvalidation below threshold\n"})
    text = as_text("r1", window, diagnose(window, []), [], colour=False)
    assert "exit code 3" in text and "| validation below threshold" in text
