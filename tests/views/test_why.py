"""What people and programs are shown."""

from __future__ import annotations

import json

from holdfast.detectors import find_endings
from holdfast.diagnosis.verdict import diagnose, over_attempts
from holdfast.views.why_json import as_json
from holdfast.views.why_text import as_text
from holdfast.vocabulary import Diagnosis, Event
from tests.story import START, story

ERROR = (
    b'Traceback (most recent call last):\n  File "/home/ada/train.py", line 3, in <module>\nKeyError: "\x1b[2Jx\x07"\n'
)


def test_the_json_has_the_contracts_shape() -> None:
    window = story(1, None, {"stderr": ERROR})
    answer = json.loads(as_json("r1", window, diagnose(window, find_endings(window))))
    assert list(answer) == ["run", "outcome", "cause", "also", "noticed", "actions", "resume", "not_working"]
    assert list(answer["cause"]) == ["id", "title", "confidence", "level", "evidence", "remedies"]
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


def _attempt(code: int, signal: int | None = None, output: bytes = b"") -> Diagnosis:
    window = story(code, signal, {"stderr": output}, host__oom_kill_count=[0.0, 0.0])
    return diagnose(window, find_endings(window))


def test_a_run_that_was_started_again_and_finished_says_what_it_was_rescued_from() -> None:
    diagnosis = over_attempts([_attempt(137, 9), _attempt(139, 11), _attempt(137, 9), _attempt(0)], restarts=3)
    assert (diagnosis.outcome, diagnosis.cause and diagnosis.cause.id) == ("recovered", "killed")
    assert [cause.id for cause in diagnosis.also] == ["native-crash"]
    text = as_text("r1", story(0), diagnosis, [], colour=False)
    assert text.startswith("The run finished; it was started again 3 times. What it was rescued from:")
    assert "To go on" not in text


def test_one_that_failed_in_the_end_is_judged_by_its_last_attempt() -> None:
    diagnosis = over_attempts([_attempt(137, 9), _attempt(1, output=ERROR)], restarts=1)
    assert (diagnosis.outcome, diagnosis.cause and diagnosis.cause.id) == ("failed", "unhandled-exception")
    assert [cause.id for cause in diagnosis.also] == ["killed"]


def test_the_command_that_resumes_is_told_only_where_there_is_a_checkpoint() -> None:
    saved = Event("checkpoint.saved", START + 50, {"step": 1180})
    for events, outcome, told in (([saved], 143, True), ([], 143, False), ([saved], 0, False)):
        window = story(outcome, None, events=events)
        diagnosis = diagnose(window, find_endings(window))
        answer = json.loads(as_json("r1", window, diagnosis))
        assert answer["resume"] == ("holdfast run --resume=r1" if told else None)
        assert ("It can be resumed from step 1180:" in as_text("r1", window, diagnosis, [], colour=False)) is told


def test_what_of_holdfast_does_not_work_stands_in_the_verdict() -> None:
    said = "checkpoints are not working here: OSError: no space"
    action = Event("action", START + 5, {"key": "not-working:checkpoints", "decision": said, "result": "said"})
    other = Event("action", START + 6, {"key": "restart:2", "decision": "started again", "result": "started"})
    window = story(0, None, {}, [action, other])
    text = as_text("r1", window, diagnose(window, []), [], colour=False)
    assert f"Not working here\n  {said}" in text and text.count("checkpoints") == 1
    assert json.loads(as_json("r1", window, diagnose(window, [])))["actions"][0]["decision"] == said
    healthy = story(0, None, {}, [other])
    assert "Not working here" not in as_text("r1", healthy, diagnose(healthy, []), [], colour=False)


def test_a_watcher_that_failed_was_not_killed() -> None:
    """The relay hands on the traceback of one that raised; of one that was killed there is none."""
    reason = "Traceback (most recent call last):\n  File x\nKeyError: 'k'\n"
    for told, words in ((reason, "failed, which is a bug of its own (KeyError: 'k')"), ("", "was killed")):
        window = story(0, events=[Event("watcher.lost", START + 3, {"pid": 4, "reason": told})])
        text = as_text("r1", window, diagnose(window, []), [], colour=False)
        assert f"Holdfast's watcher {words}; the relay watched on." in " ".join(text.split())
